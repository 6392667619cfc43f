from solution import has_zero


def test_example_1():
    assert has_zero([1, 0, 2]) is True


def test_example_2():
    assert has_zero([1, 2]) is False
