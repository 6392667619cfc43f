from solution import at_most


def test_example_1():
    assert at_most(15, 10) == 10


def test_example_2():
    assert at_most(5, 10) == 5
