from solution import first


def test_example_1():
    assert first([1, 2, 3]) == 1


def test_example_2():
    assert first(["a", "b"]) == "a"
