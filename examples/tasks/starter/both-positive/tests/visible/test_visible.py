from solution import both_positive


def test_example_1():
    assert both_positive(1, 2) is True


def test_example_2():
    assert both_positive(1, -2) is False
