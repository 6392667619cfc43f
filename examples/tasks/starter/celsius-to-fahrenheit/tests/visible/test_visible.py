from solution import celsius_to_fahrenheit


def test_example_1():
    assert celsius_to_fahrenheit(0) == 32


def test_example_2():
    assert abs(celsius_to_fahrenheit(100) - 212) < 1e-9
