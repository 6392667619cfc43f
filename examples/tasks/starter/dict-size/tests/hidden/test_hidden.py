from solution import dict_size


def test_empty():
    assert dict_size({}) == 0


def test_same_values():
    assert dict_size({"a": 1, "b": 1, "c": 1}) == 3


def test_number_keys():
    assert dict_size({1: 1, 2: 2}) == 2


def test_list_values():
    assert dict_size({"a": [1, 2, 3]}) == 1
