from solution import characters


def test_example_1():
    assert characters("abc") == ["a", "b", "c"]


def test_example_2():
    assert characters("x") == ["x"]
