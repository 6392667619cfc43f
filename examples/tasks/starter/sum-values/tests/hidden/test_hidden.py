from solution import sum_values


def test_empty():
    assert sum_values({}) == 0


def test_zeros():
    assert sum_values({"a": 0, "b": 0}) == 0


def test_negatives():
    assert sum_values({"a": -1, "b": 3}) == 2


def test_number_keys():
    assert sum_values({10: 1, 20: 2}) == 3
