from solution import first_character


def test_digit():
    assert first_character("1abc") == "1"


def test_space():
    assert first_character(" x") == " "


def test_upper():
    assert first_character("Zoo") == "Z"


def test_two():
    assert first_character("ba") == "b"
