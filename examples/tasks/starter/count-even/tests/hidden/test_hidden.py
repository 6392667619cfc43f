from solution import count_even


def test_empty():
    assert count_even([]) == 0


def test_zero_is_even():
    assert count_even([0]) == 1


def test_negatives():
    assert count_even([-2, -3]) == 1


def test_all_even():
    assert count_even([2, 4, 6, 8]) == 4
