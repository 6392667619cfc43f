from solution import box_volume


def test_unit():
    assert box_volume(1, 1, 1) == 1


def test_zero_side():
    assert box_volume(3, 0, 3) == 0


def test_cube():
    assert box_volume(5, 5, 5) == 125


def test_floats():
    assert box_volume(0.5, 2, 4) == 4.0
