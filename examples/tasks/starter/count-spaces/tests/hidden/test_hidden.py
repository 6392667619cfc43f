from solution import count_spaces


def test_empty():
    assert count_spaces("") == 0


def test_only_spaces():
    assert count_spaces("   ") == 3


def test_at_ends():
    assert count_spaces(" a ") == 2


def test_double():
    assert count_spaces("a  b") == 2
