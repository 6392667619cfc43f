from solution import half


def test_example_1():
    assert half(8) == 4


def test_example_2():
    assert half(5) == 2.5
