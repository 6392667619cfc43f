from solution import ticket_price


def test_exactly_12():
    assert ticket_price(12) == 10


def test_just_below():
    assert ticket_price(11) == 5


def test_zero():
    assert ticket_price(0) == 5


def test_old():
    assert ticket_price(80) == 10
