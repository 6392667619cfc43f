from solution import square_perimeter


def test_unit():
    assert square_perimeter(1) == 4


def test_zero():
    assert square_perimeter(0) == 0


def test_large():
    assert square_perimeter(250) == 1000


def test_floats():
    assert square_perimeter(0.5) == 2.0
