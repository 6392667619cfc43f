from solution import largest_or_none


def test_example_1():
    assert largest_or_none([3, 8, 5]) == 8


def test_example_2():
    assert largest_or_none([]) is None
