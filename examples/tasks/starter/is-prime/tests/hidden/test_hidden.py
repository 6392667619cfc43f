from solution import is_prime


def test_one_and_zero():
    assert is_prime(1) is False
    assert is_prime(0) is False


def test_two():
    assert is_prime(2) is True


def test_square_of_prime():
    assert is_prime(9) is False
    assert is_prime(25) is False


def test_larger():
    assert is_prime(97) is True
    assert is_prime(91) is False


def test_negative():
    assert is_prime(-3) is False
