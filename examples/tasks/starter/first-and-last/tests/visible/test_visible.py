from solution import first_and_last


def test_example_1():
    assert first_and_last([1, 2, 3]) == [1, 3]


def test_example_2():
    assert first_and_last(["a", "b"]) == ["a", "b"]
