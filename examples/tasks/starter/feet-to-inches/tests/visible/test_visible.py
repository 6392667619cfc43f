from solution import feet_to_inches


def test_example_1():
    assert feet_to_inches(2) == 24


def test_example_2():
    assert feet_to_inches(1) == 12
