from solution import count_zeros


def test_empty():
    assert count_zeros([]) == 0


def test_all_zero():
    assert count_zeros([0, 0, 0]) == 3


def test_negatives():
    assert count_zeros([-1, 0, 1]) == 1


def test_ten_is_not_zero():
    assert count_zeros([10, 100]) == 0
