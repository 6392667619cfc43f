from solution import repeat_string


def test_zero_times():
    assert repeat_string("ab", 0) == ""


def test_empty():
    assert repeat_string("", 5) == ""


def test_longer():
    assert repeat_string("ha", 5) == "hahahahaha"


def test_spaces():
    assert repeat_string("a ", 2) == "a a "
