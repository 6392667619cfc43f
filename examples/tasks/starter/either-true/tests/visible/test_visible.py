from solution import either


def test_example_1():
    assert either(True, False) is True


def test_example_2():
    assert either(False, False) is False
