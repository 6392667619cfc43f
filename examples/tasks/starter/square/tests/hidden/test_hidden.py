from solution import square


def test_zero():
    assert square(0) == 0


def test_one():
    assert square(1) == 1


def test_large():
    assert square(100) == 10000


def test_floats():
    assert square(0.5) == 0.25
