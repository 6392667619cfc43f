from solution import contains_text


def test_example_1():
    assert contains_text("hello", "ell") is True


def test_example_2():
    assert contains_text("hello", "x") is False
