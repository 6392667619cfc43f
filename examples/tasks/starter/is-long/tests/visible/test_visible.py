from solution import is_long


def test_example_1():
    assert is_long("a long sentence") is True


def test_example_2():
    assert is_long("short") is False
