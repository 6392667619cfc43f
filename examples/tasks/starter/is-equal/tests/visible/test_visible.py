from solution import is_equal


def test_example_1():
    assert is_equal(3, 3) is True


def test_example_2():
    assert is_equal(3, 4) is False
