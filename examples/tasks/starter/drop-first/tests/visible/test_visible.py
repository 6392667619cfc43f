from solution import drop_first


def test_example_1():
    assert drop_first([1, 2, 3]) == [2, 3]


def test_example_2():
    assert drop_first(["a", "b"]) == ["b"]
