from solution import divide


def test_example_1():
    assert divide(10, 2) == 5


def test_example_2():
    assert divide(7, 2) == 3.5
