from solution import weeks_to_days


def test_example_1():
    assert weeks_to_days(2) == 14


def test_example_2():
    assert weeks_to_days(1) == 7
