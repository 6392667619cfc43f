from solution import big_or_small


def test_example_1():
    assert big_or_small(500) == "big"


def test_example_2():
    assert big_or_small(3) == "small"
