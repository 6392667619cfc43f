from solution import reverse_list


def test_empty():
    assert reverse_list([]) == []


def test_one_item():
    assert reverse_list([5]) == [5]


def test_repeated():
    assert reverse_list([1, 1, 2]) == [2, 1, 1]


def test_longer():
    assert reverse_list([1, 2, 3, 4, 5]) == [5, 4, 3, 2, 1]
