from solution import square_perimeter


def test_example_1():
    assert square_perimeter(3) == 12


def test_example_2():
    assert square_perimeter(5) == 20
