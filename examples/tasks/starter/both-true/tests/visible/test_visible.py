from solution import both


def test_example_1():
    assert both(True, True) is True


def test_example_2():
    assert both(True, False) is False
