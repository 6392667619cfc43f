from solution import second


def test_example_1():
    assert second([1, 2, 3]) == 2


def test_example_2():
    assert second(["a", "b"]) == "b"
