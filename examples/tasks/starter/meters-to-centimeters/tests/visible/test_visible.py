from solution import meters_to_centimeters


def test_example_1():
    assert meters_to_centimeters(2) == 200


def test_example_2():
    assert meters_to_centimeters(1) == 100
