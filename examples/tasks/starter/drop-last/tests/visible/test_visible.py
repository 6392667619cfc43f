from solution import drop_last


def test_example_1():
    assert drop_last([1, 2, 3]) == [1, 2]


def test_example_2():
    assert drop_last(["a", "b"]) == ["a"]
