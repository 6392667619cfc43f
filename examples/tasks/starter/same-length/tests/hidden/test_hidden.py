from solution import same_length


def test_both_empty():
    assert same_length([], []) is True


def test_one_empty():
    assert same_length([], [1]) is False


def test_other_values():
    assert same_length([1, 1], ["a", "b"]) is True


def test_longer():
    assert same_length([1, 2, 3, 4], [1, 2, 3]) is False
