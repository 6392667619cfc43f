from solution import last


def test_example_1():
    assert last([1, 2, 3]) == 3


def test_example_2():
    assert last(["a", "b"]) == "b"
