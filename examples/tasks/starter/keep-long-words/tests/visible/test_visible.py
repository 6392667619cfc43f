from solution import keep_long


def test_example_1():
    assert keep_long(["hi", "hello"], 3) == ["hello"]


def test_example_2():
    assert keep_long(["a"], 1) == []
