def text():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        return file.read()


def start():
    """Digits before the first character that is not one."""
    answer = text()
    return next((i for i, character in enumerate(answer) if character not in "0123456789"), len(answer))


def test_starts_with_1_digits():
    assert start() >= 1


def test_starts_with_2_digits():
    assert start() >= 2


def test_starts_with_3_digits():
    assert start() >= 3


def test_starts_with_4_digits():
    assert start() >= 4


def test_starts_with_5_digits():
    assert start() >= 5


def test_starts_with_6_digits():
    assert start() >= 6


def test_starts_with_7_digits():
    assert start() >= 7
