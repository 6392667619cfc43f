from solution import total_length


def test_example_1():
    assert total_length("hi", "you") == 5


def test_example_2():
    assert total_length("a", "b") == 2
