from solution import can_drive


def test_example_1():
    assert can_drive(20) is True


def test_example_2():
    assert can_drive(10) is False
