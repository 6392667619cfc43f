from solution import first_or_none


def test_example_1():
    assert first_or_none([1, 2, 3]) == 1


def test_example_2():
    assert first_or_none([]) is None
