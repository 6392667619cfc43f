from solution import sale_price


def test_example_1():
    assert sale_price(10) == 5


def test_example_2():
    assert sale_price(7) == 3.5
