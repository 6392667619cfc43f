from solution import remainder


def test_example_1():
    assert remainder(10, 3) == 1


def test_example_2():
    assert remainder(8, 4) == 0
