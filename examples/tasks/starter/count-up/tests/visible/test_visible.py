from solution import count_up


def test_example_1():
    assert count_up(3) == [1, 2, 3]


def test_example_2():
    assert count_up(1) == [1]
