from solution import check_age


def test_example_1():
    assert check_age(20) == 20


def test_example_2():
    assert check_age(5) == 5
