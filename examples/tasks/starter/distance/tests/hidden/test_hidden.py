from solution import distance


def test_same():
    assert distance(5, 5) == 0


def test_zero():
    assert distance(0, 4) == 4


def test_mixed():
    assert distance(-2, 3) == 5


def test_negatives():
    assert distance(-2, -9) == 7
