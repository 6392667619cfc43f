from solution import sum_of_squares


def test_empty():
    assert sum_of_squares([]) == 0


def test_zeros():
    assert sum_of_squares([0, 0]) == 0


def test_negatives():
    assert sum_of_squares([-1, -2]) == 5


def test_longer():
    assert sum_of_squares([1, 1, 1, 1, 2]) == 8
