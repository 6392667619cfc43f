from solution import is_empty


def test_example_1():
    assert is_empty([]) is True


def test_example_2():
    assert is_empty([1, 2]) is False
