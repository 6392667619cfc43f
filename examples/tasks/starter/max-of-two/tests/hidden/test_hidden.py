from solution import max_of_two


def test_equal():
    assert max_of_two(4, 4) == 4


def test_negatives():
    assert max_of_two(-3, -7) == -3


def test_mixed():
    assert max_of_two(-1, 1) == 1


def test_zero():
    assert max_of_two(0, -5) == 0
