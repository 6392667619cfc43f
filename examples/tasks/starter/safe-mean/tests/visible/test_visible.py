from solution import safe_mean


def test_example_1():
    assert safe_mean([2, 4]) == 3


def test_example_2():
    assert safe_mean([]) == 0
