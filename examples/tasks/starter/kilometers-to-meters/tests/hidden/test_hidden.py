from solution import kilometers_to_meters


def test_zero():
    assert kilometers_to_meters(0) == 0


def test_half():
    assert kilometers_to_meters(0.5) == 500


def test_marathon():
    assert kilometers_to_meters(42) == 42000


def test_ten():
    assert kilometers_to_meters(10) == 10000
