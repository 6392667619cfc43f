from solution import to_text


def test_example_1():
    assert to_text(123) == "123"


def test_example_2():
    assert to_text(7) == "7"
