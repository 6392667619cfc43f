from solution import max_of_three


def test_example_1():
    assert max_of_three(1, 5, 3) == 5


def test_example_2():
    assert max_of_three(9, 2, 4) == 9
