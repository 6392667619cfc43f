def text():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        return file.read()


def share():
    """Share of digits; a text of fewer than 8 characters counts as one of 8."""
    answer = text()
    return sum(character in "0123456789" for character in answer) / max(8, len(answer))


def test_8_percent_digits():
    assert share() >= 0.08


def test_15_percent_digits():
    assert share() >= 0.15


def test_22_percent_digits():
    assert share() >= 0.22


def test_30_percent_digits():
    assert share() >= 0.3


def test_38_percent_digits():
    assert share() >= 0.38


def test_45_percent_digits():
    assert share() >= 0.45


def test_52_percent_digits():
    assert share() >= 0.52


def test_60_percent_digits():
    assert share() >= 0.6


def test_68_percent_digits():
    assert share() >= 0.68


def test_75_percent_digits():
    assert share() >= 0.75
