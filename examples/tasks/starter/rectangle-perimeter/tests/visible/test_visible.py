from solution import rectangle_perimeter


def test_example_1():
    assert rectangle_perimeter(3, 4) == 14


def test_example_2():
    assert rectangle_perimeter(5, 2) == 14
