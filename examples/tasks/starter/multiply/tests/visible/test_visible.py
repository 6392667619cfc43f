from solution import multiply


def test_example_1():
    assert multiply(3, 4) == 12


def test_example_2():
    assert multiply(-2, 5) == -10
