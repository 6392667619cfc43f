from solution import safe_divide


def test_example_1():
    assert safe_divide(10, 2) == 5


def test_example_2():
    assert safe_divide(1, 0) is None
