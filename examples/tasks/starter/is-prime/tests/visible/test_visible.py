from solution import is_prime


def test_example_1():
    assert is_prime(7) is True


def test_example_2():
    assert is_prime(8) is False
