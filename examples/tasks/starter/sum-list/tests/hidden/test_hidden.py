from solution import sum_list


def test_empty():
    assert sum_list([]) == 0


def test_one_number():
    assert sum_list([7]) == 7


def test_negatives():
    assert sum_list([-1, -2]) == -3


def test_longer():
    assert sum_list([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) == 55
