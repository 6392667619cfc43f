from solution import total_price


def test_example_1():
    assert total_price(5, 3) == 15


def test_example_2():
    assert total_price(2, 10) == 20
