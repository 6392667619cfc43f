from solution import hours_to_minutes


def test_example_1():
    assert hours_to_minutes(2) == 120


def test_example_2():
    assert hours_to_minutes(1) == 60
