from solution import min_of_two


def test_example_1():
    assert min_of_two(3, 8) == 3


def test_example_2():
    assert min_of_two(5, 2) == 2
