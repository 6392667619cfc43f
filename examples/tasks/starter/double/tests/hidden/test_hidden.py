from solution import double


def test_zero():
    assert double(0) == 0


def test_one():
    assert double(1) == 2


def test_large():
    assert double(5000) == 10000


def test_floats():
    assert double(1.5) == 3.0
