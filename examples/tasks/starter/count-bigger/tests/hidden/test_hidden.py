from solution import count_bigger


def test_empty():
    assert count_bigger([], 0) == 0


def test_equal_does_not_count():
    assert count_bigger([3, 3], 3) == 0


def test_negatives():
    assert count_bigger([-5, -1], -2) == 1


def test_all():
    assert count_bigger([7, 8, 9], 0) == 3
