from solution import positive_or_zero


def test_example_1():
    assert positive_or_zero(5) == 5


def test_example_2():
    assert positive_or_zero(-3) == 0
