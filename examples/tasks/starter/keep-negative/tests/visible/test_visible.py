from solution import keep_negative


def test_example_1():
    assert keep_negative([1, -2, 3]) == [-2]


def test_example_2():
    assert keep_negative([5]) == []
