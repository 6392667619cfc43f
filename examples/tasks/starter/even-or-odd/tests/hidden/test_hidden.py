from solution import even_or_odd


def test_zero():
    assert even_or_odd(0) == "even"


def test_one_and_two():
    assert even_or_odd(1) == "odd"
    assert even_or_odd(2) == "even"


def test_large():
    assert even_or_odd(123456) == "even"
    assert even_or_odd(123457) == "odd"


def test_negative():
    assert even_or_odd(-2) == "even"
    assert even_or_odd(-1) == "odd"
