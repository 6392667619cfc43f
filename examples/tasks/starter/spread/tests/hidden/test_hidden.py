from solution import spread


def test_one_number():
    assert spread([7]) == 0


def test_repeated():
    assert spread([4, 4, 4]) == 0


def test_negatives():
    assert spread([-5, -2]) == 3


def test_mixed():
    assert spread([-1, 0, 1]) == 2
