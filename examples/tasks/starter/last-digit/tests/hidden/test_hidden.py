from solution import last_digit


def test_zero():
    assert last_digit(0) == 0


def test_ends_with_zero():
    assert last_digit(50) == 0


def test_two_digits():
    assert last_digit(19) == 9


def test_large():
    assert last_digit(987654) == 4
