from solution import sale_price


def test_zero():
    assert sale_price(0) == 0


def test_one():
    assert sale_price(1) == 0.5


def test_large():
    assert sale_price(1000) == 500


def test_floats():
    assert sale_price(2.5) == 1.25
