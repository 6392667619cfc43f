from solution import upper_all


def test_example_1():
    assert upper_all(["hi", "you"]) == ["HI", "YOU"]


def test_example_2():
    assert upper_all(["a"]) == ["A"]
