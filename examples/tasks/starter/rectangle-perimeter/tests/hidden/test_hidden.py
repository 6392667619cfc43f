from solution import rectangle_perimeter


def test_unit():
    assert rectangle_perimeter(1, 1) == 4


def test_zero_side():
    assert rectangle_perimeter(0, 9) == 18


def test_square():
    assert rectangle_perimeter(6, 6) == 24


def test_floats():
    assert rectangle_perimeter(0.5, 1.5) == 4.0
