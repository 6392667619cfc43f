from solution import triangle_area


def test_unit():
    assert triangle_area(1, 1) == 0.5


def test_zero_height():
    assert triangle_area(8, 0) == 0


def test_large():
    assert triangle_area(100, 50) == 2500


def test_floats():
    assert triangle_area(0.5, 4) == 1.0
