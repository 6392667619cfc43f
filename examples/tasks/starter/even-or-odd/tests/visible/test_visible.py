from solution import even_or_odd


def test_example_1():
    assert even_or_odd(4) == "even"


def test_example_2():
    assert even_or_odd(7) == "odd"
