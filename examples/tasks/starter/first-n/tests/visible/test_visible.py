from solution import first_n


def test_example_1():
    assert first_n([1, 2, 3, 4], 2) == [1, 2]


def test_example_2():
    assert first_n(["a", "b"], 1) == ["a"]
