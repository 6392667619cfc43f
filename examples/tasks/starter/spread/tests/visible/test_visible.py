from solution import spread


def test_example_1():
    assert spread([3, 8, 5]) == 5


def test_example_2():
    assert spread([10, 1]) == 9
