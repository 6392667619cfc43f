from solution import average


def test_zeros():
    assert average(0, 0) == 0


def test_same():
    assert average(7, 7) == 7


def test_opposite():
    assert average(-5, 5) == 0


def test_negatives():
    assert average(-2, -4) == -3
