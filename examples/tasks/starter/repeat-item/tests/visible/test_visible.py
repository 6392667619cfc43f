from solution import repeat_item


def test_example_1():
    assert repeat_item(7, 3) == [7, 7, 7]


def test_example_2():
    assert repeat_item("a", 2) == ["a", "a"]
