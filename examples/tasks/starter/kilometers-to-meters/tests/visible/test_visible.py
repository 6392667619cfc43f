from solution import kilometers_to_meters


def test_example_1():
    assert kilometers_to_meters(2) == 2000


def test_example_2():
    assert kilometers_to_meters(1) == 1000
