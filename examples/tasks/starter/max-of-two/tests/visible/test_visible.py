from solution import max_of_two


def test_example_1():
    assert max_of_two(3, 8) == 8


def test_example_2():
    assert max_of_two(5, 2) == 5
