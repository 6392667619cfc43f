from solution import rectangle_area


def test_example_1():
    assert rectangle_area(3, 4) == 12


def test_example_2():
    assert rectangle_area(5, 2) == 10
