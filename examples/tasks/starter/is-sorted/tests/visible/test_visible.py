from solution import is_sorted


def test_example_1():
    assert is_sorted([1, 2, 3]) is True


def test_example_2():
    assert is_sorted([3, 1, 2]) is False
