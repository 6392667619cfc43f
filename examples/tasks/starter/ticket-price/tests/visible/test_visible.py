from solution import ticket_price


def test_example_1():
    assert ticket_price(8) == 5


def test_example_2():
    assert ticket_price(30) == 10
