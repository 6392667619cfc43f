from solution import add_tip


def test_example_1():
    assert add_tip(20, 3) == 23


def test_example_2():
    assert add_tip(50, 5) == 55
