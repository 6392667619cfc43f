from solution import last_character


def test_digit():
    assert last_character("abc1") == "1"


def test_space():
    assert last_character("x ") == " "


def test_upper():
    assert last_character("JazZ") == "Z"


def test_two():
    assert last_character("ba") == "a"
