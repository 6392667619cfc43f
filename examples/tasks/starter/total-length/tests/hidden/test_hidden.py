from solution import total_length


def test_both_empty():
    assert total_length("", "") == 0


def test_one_empty():
    assert total_length("", "abc") == 3


def test_spaces():
    assert total_length(" ", "a b") == 4


def test_longer():
    assert total_length("hello", "goodbye") == 12
