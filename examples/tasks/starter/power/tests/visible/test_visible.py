from solution import power


def test_example_1():
    assert power(2, 3) == 8


def test_example_2():
    assert power(5, 2) == 25
