from solution import count_positive


def test_empty():
    assert count_positive([]) == 0


def test_zero_is_not_positive():
    assert count_positive([0, 0]) == 0


def test_all_positive():
    assert count_positive([1, 2, 3, 4]) == 4


def test_mixed():
    assert count_positive([-1, 0, 1]) == 1
