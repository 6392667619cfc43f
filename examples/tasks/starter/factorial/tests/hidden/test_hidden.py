from solution import factorial


def test_zero():
    assert factorial(0) == 1


def test_one():
    assert factorial(1) == 1


def test_two():
    assert factorial(2) == 2


def test_ten():
    assert factorial(10) == 3628800
