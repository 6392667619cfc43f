from solution import concatenate


def test_example_1():
    assert concatenate([1, 2], [3]) == [1, 2, 3]


def test_example_2():
    assert concatenate(["a"], ["b"]) == ["a", "b"]
