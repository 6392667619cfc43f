from solution import same_length


def test_example_1():
    assert same_length([1, 2], [3, 4]) is True


def test_example_2():
    assert same_length([1], [3, 4]) is False
