from solution import both


def test_first_false():
    assert both(False, True) is False


def test_both_false():
    assert both(False, False) is False


def test_both_true():
    assert both(True, True) is True


def test_second_false():
    assert both(True, False) is False
