from solution import sum_of_digits


def test_zero():
    assert sum_of_digits(0) == 0


def test_ten():
    assert sum_of_digits(10) == 1


def test_repeated():
    assert sum_of_digits(99) == 18


def test_large():
    assert sum_of_digits(100200) == 3
