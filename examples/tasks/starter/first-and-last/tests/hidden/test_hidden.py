from solution import first_and_last


def test_one_item():
    assert first_and_last([9]) == [9, 9]


def test_zeros():
    assert first_and_last([0, 5, 0]) == [0, 0]


def test_longer():
    assert first_and_last([8, 7, 6, 5, 4]) == [8, 4]


def test_strings():
    assert first_and_last(["x", "y", "z"]) == ["x", "z"]
