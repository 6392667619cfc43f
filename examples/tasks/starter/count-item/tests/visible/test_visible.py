from solution import count_item


def test_example_1():
    assert count_item([1, 2, 1], 1) == 2


def test_example_2():
    assert count_item(["a", "b"], "c") == 0
