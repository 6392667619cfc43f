from solution import smallest


def test_example_1():
    assert smallest([3, 8, 5]) == 3


def test_example_2():
    assert smallest([1]) == 1
