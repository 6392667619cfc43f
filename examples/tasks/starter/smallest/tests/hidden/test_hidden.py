from solution import smallest


def test_last_is_smallest():
    assert smallest([9, 2, 1]) == 1


def test_middle_is_smallest():
    assert smallest([4, 2, 7]) == 2


def test_negatives():
    assert smallest([-5, -2, -9]) == -9


def test_repeated():
    assert smallest([4, 4, 4]) == 4
