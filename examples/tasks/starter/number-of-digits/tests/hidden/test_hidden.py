from solution import number_of_digits


def test_zero():
    assert number_of_digits(0) == 1


def test_ten():
    assert number_of_digits(10) == 2


def test_ninety_nine():
    assert number_of_digits(99) == 2


def test_large():
    assert number_of_digits(1000000) == 7
