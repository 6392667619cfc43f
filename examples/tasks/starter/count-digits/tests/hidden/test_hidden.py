from solution import count_digits


def test_empty():
    assert count_digits("") == 0


def test_only_digits():
    assert count_digits("12345") == 5


def test_zero():
    assert count_digits("0") == 1


def test_spaces():
    assert count_digits("1 2 3") == 3
