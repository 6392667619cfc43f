from solution import sum_values


def test_example_1():
    assert sum_values({"a": 1, "b": 2}) == 3


def test_example_2():
    assert sum_values({"a": 5}) == 5
