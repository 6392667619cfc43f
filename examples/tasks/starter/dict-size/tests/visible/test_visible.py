from solution import dict_size


def test_example_1():
    assert dict_size({"a": 1, "b": 2}) == 2


def test_example_2():
    assert dict_size({"a": 1}) == 1
