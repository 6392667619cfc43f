from solution import change


def test_exact():
    assert change(8, 8) == 0


def test_free():
    assert change(5, 0) == 5


def test_large():
    assert change(1000, 1) == 999


def test_floats():
    assert change(2.0, 0.5) == 1.5
