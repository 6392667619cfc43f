from solution import first


def test_one_item():
    assert first([9]) == 9


def test_zero_first():
    assert first([0, 5]) == 0


def test_lists():
    assert first([[1], [2]]) == [1]


def test_longer():
    assert first([8, 7, 6, 5, 4]) == 8
