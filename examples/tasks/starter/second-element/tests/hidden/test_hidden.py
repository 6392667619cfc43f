from solution import second


def test_two_items():
    assert second([9, 8]) == 8


def test_zero():
    assert second([5, 0, 1]) == 0


def test_same():
    assert second([4, 4, 2]) == 4


def test_longer():
    assert second([8, 7, 6, 5, 4]) == 7
