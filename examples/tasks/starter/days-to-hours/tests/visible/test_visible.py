from solution import days_to_hours


def test_example_1():
    assert days_to_hours(2) == 48


def test_example_2():
    assert days_to_hours(1) == 24
