from solution import mean


def test_one_number():
    assert mean([7]) == 7


def test_zeros():
    assert mean([0, 0, 0]) == 0


def test_negatives():
    assert mean([-2, -4]) == -3


def test_longer():
    assert mean([1, 2, 3, 4, 5, 9]) == 4
