from solution import minutes_to_seconds


def test_example_1():
    assert minutes_to_seconds(3) == 180


def test_example_2():
    assert minutes_to_seconds(1) == 60
