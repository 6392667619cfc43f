from solution import either


def test_first_false():
    assert either(False, True) is True


def test_both_true():
    assert either(True, True) is True


def test_both_false():
    assert either(False, False) is False


def test_second_false():
    assert either(True, False) is True
