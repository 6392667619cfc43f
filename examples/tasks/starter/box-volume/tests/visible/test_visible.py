from solution import box_volume


def test_example_1():
    assert box_volume(2, 3, 4) == 24


def test_example_2():
    assert box_volume(1, 5, 2) == 10
