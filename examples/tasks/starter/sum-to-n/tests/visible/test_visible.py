from solution import sum_to


def test_example_1():
    assert sum_to(4) == 10


def test_example_2():
    assert sum_to(1) == 1
