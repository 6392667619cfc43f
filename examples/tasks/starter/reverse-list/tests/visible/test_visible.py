from solution import reverse_list


def test_example_1():
    assert reverse_list([1, 2, 3]) == [3, 2, 1]


def test_example_2():
    assert reverse_list(["a", "b"]) == ["b", "a"]
