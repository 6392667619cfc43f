from solution import min_of_three


def test_example_1():
    assert min_of_three(4, 5, 3) == 3


def test_example_2():
    assert min_of_three(1, 2, 4) == 1
