from solution import is_weekend


def test_example_1():
    assert is_weekend("Saturday") is True


def test_example_2():
    assert is_weekend("Monday") is False
