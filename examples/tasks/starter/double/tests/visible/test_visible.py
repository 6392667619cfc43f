from solution import double


def test_example_1():
    assert double(6) == 12


def test_example_2():
    assert double(-4) == -8
