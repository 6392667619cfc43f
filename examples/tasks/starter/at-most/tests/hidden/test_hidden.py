from solution import at_most


def test_on_limit():
    assert at_most(10, 10) == 10


def test_zero():
    assert at_most(0, 3) == 0


def test_negatives():
    assert at_most(-8, -2) == -8


def test_negative_limit():
    assert at_most(4, -1) == -1
