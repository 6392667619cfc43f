from solution import factorial


def test_example_1():
    assert factorial(5) == 120


def test_example_2():
    assert factorial(3) == 6
