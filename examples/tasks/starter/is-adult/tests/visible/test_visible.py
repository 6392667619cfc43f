from solution import is_adult


def test_example_1():
    assert is_adult(20) is True


def test_example_2():
    assert is_adult(10) is False
