from solution import third


def test_zero():
    assert third([5, 1, 0]) == 0


def test_same():
    assert third([4, 4, 4]) == 4


def test_longer():
    assert third([9, 8, 7, 6, 5]) == 7


def test_strings():
    assert third(["x", "y", "z"]) == "z"
