from solution import max_of_three


def test_last_is_largest():
    assert max_of_three(1, 2, 7) == 7


def test_equal():
    assert max_of_three(4, 4, 4) == 4


def test_two_equal():
    assert max_of_three(6, 6, 1) == 6


def test_negatives():
    assert max_of_three(-3, -1, -2) == -1
