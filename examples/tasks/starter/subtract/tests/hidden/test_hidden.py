from solution import subtract


def test_zeros():
    assert subtract(0, 0) == 0


def test_same():
    assert subtract(7, 7) == 0


def test_negatives():
    assert subtract(-2, -3) == 1


def test_floats():
    assert subtract(1.5, 0.5) == 1.0
