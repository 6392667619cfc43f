from solution import list_length


def test_example_1():
    assert list_length([1, 2, 3]) == 3


def test_example_2():
    assert list_length(["a"]) == 1
