from solution import increment


def test_zero():
    assert increment(0) == 1


def test_large():
    assert increment(999) == 1000


def test_negative():
    assert increment(-10) == -9


def test_floats():
    assert increment(0.5) == 1.5
