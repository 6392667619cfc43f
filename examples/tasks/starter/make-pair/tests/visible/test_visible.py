from solution import make_pair


def test_example_1():
    assert make_pair(1, 2) == [1, 2]


def test_example_2():
    assert make_pair("x", "y") == ["x", "y"]
