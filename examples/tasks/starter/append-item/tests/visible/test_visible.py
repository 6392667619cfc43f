from solution import append_item


def test_example_1():
    assert append_item([1, 2], 3) == [1, 2, 3]


def test_example_2():
    assert append_item([], "a") == ["a"]
