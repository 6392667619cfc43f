from solution import pass_or_fail


def test_exactly_50():
    assert pass_or_fail(50) == "pass"


def test_just_below():
    assert pass_or_fail(49) == "fail"


def test_zero():
    assert pass_or_fail(0) == "fail"


def test_full():
    assert pass_or_fail(100) == "pass"
