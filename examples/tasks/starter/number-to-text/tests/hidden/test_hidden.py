from solution import to_text


def test_zero():
    assert to_text(0) == "0"


def test_negative():
    assert to_text(-5) == "-5"


def test_large():
    assert to_text(1000000) == "1000000"


def test_ten():
    assert to_text(10) == "10"
