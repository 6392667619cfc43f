from solution import min_of_three


def test_middle_is_smallest():
    assert min_of_three(8, 2, 7) == 2


def test_equal():
    assert min_of_three(4, 4, 4) == 4


def test_two_equal():
    assert min_of_three(1, 1, 6) == 1


def test_negatives():
    assert min_of_three(-3, -1, -2) == -3
