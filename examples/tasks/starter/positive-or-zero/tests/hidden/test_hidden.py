from solution import positive_or_zero


def test_zero():
    assert positive_or_zero(0) == 0


def test_one():
    assert positive_or_zero(1) == 1


def test_minus_one():
    assert positive_or_zero(-1) == 0


def test_floats():
    assert positive_or_zero(2.5) == 2.5
    assert positive_or_zero(-0.5) == 0
