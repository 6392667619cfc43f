from solution import checked_first


def test_example_1():
    assert checked_first([1, 2, 3]) == 1


def test_example_2():
    assert checked_first(["a"]) == "a"
