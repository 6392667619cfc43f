from solution import has_two


def test_empty():
    assert has_two([]) is False


def test_three():
    assert has_two([1, 2, 3]) is True


def test_same():
    assert has_two([4, 4]) is True


def test_longer():
    assert has_two([0, 0, 0, 0, 0]) is True
