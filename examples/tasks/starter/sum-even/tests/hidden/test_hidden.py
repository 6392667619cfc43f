from solution import sum_even


def test_empty():
    assert sum_even([]) == 0


def test_no_even():
    assert sum_even([1, 3, 5]) == 0


def test_negatives():
    assert sum_even([-2, -3]) == -2


def test_longer():
    assert sum_even([2, 4, 6, 7, 8]) == 20
