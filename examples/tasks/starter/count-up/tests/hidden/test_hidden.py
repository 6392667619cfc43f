from solution import count_up


def test_zero():
    assert count_up(0) == []


def test_two():
    assert count_up(2) == [1, 2]


def test_five():
    assert count_up(5) == [1, 2, 3, 4, 5]


def test_ten():
    assert count_up(10) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
