from solution import average_of_three


def test_example_1():
    assert average_of_three(1, 2, 3) == 2


def test_example_2():
    assert average_of_three(10, 20, 30) == 20
