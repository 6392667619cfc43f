from solution import is_divisible


def test_example_1():
    assert is_divisible(10, 5) is True


def test_example_2():
    assert is_divisible(10, 3) is False
