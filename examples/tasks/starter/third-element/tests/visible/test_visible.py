from solution import third


def test_example_1():
    assert third([1, 2, 3]) == 3


def test_example_2():
    assert third(["a", "b", "c", "d"]) == "c"
