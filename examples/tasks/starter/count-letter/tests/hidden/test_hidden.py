from solution import count_letter


def test_empty():
    assert count_letter("", "a") == 0


def test_one():
    assert count_letter("hello", "h") == 1


def test_all():
    assert count_letter("zzz", "z") == 3


def test_case_matters():
    assert count_letter("Aa", "a") == 1
