from solution import min_of_two


def test_equal():
    assert min_of_two(4, 4) == 4


def test_negatives():
    assert min_of_two(-3, -7) == -7


def test_mixed():
    assert min_of_two(-1, 1) == -1


def test_zero():
    assert min_of_two(0, 5) == 0
