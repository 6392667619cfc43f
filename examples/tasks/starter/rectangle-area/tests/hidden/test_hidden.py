from solution import rectangle_area


def test_unit():
    assert rectangle_area(1, 1) == 1


def test_zero_side():
    assert rectangle_area(0, 9) == 0


def test_square():
    assert rectangle_area(6, 6) == 36


def test_floats():
    assert rectangle_area(0.5, 8) == 4.0
