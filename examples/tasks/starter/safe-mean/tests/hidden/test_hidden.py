from solution import safe_mean


def test_one_number():
    assert safe_mean([7]) == 7


def test_zeros():
    assert safe_mean([0, 0]) == 0


def test_negatives():
    assert safe_mean([-2, -4]) == -3


def test_longer():
    assert safe_mean([1, 2, 3, 4, 5]) == 3
