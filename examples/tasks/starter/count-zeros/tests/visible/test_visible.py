from solution import count_zeros


def test_example_1():
    assert count_zeros([0, 1, 0]) == 2


def test_example_2():
    assert count_zeros([1, 2]) == 0
