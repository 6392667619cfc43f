from solution import celsius_to_fahrenheit


def test_body():
    assert abs(celsius_to_fahrenheit(37) - 98.6) < 1e-9


def test_same_on_both():
    assert abs(celsius_to_fahrenheit(-40) - -40) < 1e-9


def test_cold():
    assert abs(celsius_to_fahrenheit(-10) - 14) < 1e-9


def test_warm():
    assert abs(celsius_to_fahrenheit(25) - 77) < 1e-9
