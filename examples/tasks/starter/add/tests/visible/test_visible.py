from solution import add


def test_example_1():
    assert add(2, 3) == 5


def test_example_2():
    assert add(10, -4) == 6
