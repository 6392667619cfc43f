from solution import first_n


def test_zero():
    assert first_n([1, 2], 0) == []


def test_all():
    assert first_n([1, 2], 2) == [1, 2]


def test_more_than_there_are():
    assert first_n([1], 5) == [1]


def test_empty():
    assert first_n([], 3) == []
