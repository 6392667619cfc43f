from solution import total_price


def test_zero_quantity():
    assert total_price(9, 0) == 0


def test_one():
    assert total_price(7, 1) == 7


def test_large():
    assert total_price(100, 100) == 10000


def test_floats():
    assert total_price(0.5, 4) == 2.0
