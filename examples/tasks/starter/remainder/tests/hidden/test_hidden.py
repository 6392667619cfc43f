from solution import remainder


def test_smaller_dividend():
    assert remainder(2, 5) == 2


def test_by_one():
    assert remainder(7, 1) == 0


def test_by_itself():
    assert remainder(6, 6) == 0


def test_large():
    assert remainder(1003, 10) == 3
