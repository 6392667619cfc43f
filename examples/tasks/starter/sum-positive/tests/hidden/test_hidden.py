from solution import sum_positive


def test_empty():
    assert sum_positive([]) == 0


def test_no_positive():
    assert sum_positive([-1, -2]) == 0


def test_zeros():
    assert sum_positive([0, 0, 2]) == 2


def test_longer():
    assert sum_positive([1, -1, 2, -2, 3, -3]) == 6
