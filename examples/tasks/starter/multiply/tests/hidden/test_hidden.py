from solution import multiply


def test_by_zero():
    assert multiply(0, 9) == 0
    assert multiply(9, 0) == 0


def test_by_one():
    assert multiply(1, 8) == 8


def test_negatives():
    assert multiply(-3, -3) == 9


def test_floats():
    assert multiply(0.5, 4) == 2.0
