from solution import is_between


def test_example_1():
    assert is_between(5, 1, 10) is True


def test_example_2():
    assert is_between(15, 1, 10) is False
