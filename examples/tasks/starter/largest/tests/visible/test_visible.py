from solution import largest


def test_example_1():
    assert largest([3, 8, 5]) == 8


def test_example_2():
    assert largest([1]) == 1
