from solution import sum_list


def test_example_1():
    assert sum_list([1, 2, 3]) == 6


def test_example_2():
    assert sum_list([10, -4]) == 6
