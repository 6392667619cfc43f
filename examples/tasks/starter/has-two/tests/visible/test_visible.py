from solution import has_two


def test_example_1():
    assert has_two([1, 2]) is True


def test_example_2():
    assert has_two([1]) is False
