from solution import product


def test_empty():
    assert product([]) == 1


def test_with_zero():
    assert product([3, 0, 9]) == 0


def test_negatives():
    assert product([-1, 2]) == -2


def test_longer():
    assert product([1, 2, 3, 4, 5]) == 120
