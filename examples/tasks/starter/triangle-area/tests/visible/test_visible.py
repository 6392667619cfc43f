from solution import triangle_area


def test_example_1():
    assert triangle_area(4, 3) == 6


def test_example_2():
    assert triangle_area(5, 5) == 12.5
