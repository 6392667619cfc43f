from solution import hot_or_cold


def test_example_1():
    assert hot_or_cold(30) == "hot"


def test_example_2():
    assert hot_or_cold(10) == "cold"
