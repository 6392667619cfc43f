from solution import power


def test_exponent_zero():
    assert power(7, 0) == 1


def test_exponent_one():
    assert power(7, 1) == 7


def test_base_zero():
    assert power(0, 3) == 0


def test_negative_base():
    assert power(-2, 3) == -8
