def text():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        return file.read()


def share():
    """Share of digits; a text of fewer than 8 characters counts as one of 8."""
    answer = text()
    return sum(character in "0123456789" for character in answer) / max(8, len(answer))


def test_8_percent_digits():
    assert share() >= 0.08


def test_17_percent_digits():
    assert share() >= 0.17


def test_26_percent_digits():
    assert share() >= 0.26


def test_34_percent_digits():
    assert share() >= 0.34


def test_42_percent_digits():
    assert share() >= 0.42


def test_51_percent_digits():
    assert share() >= 0.51


def test_60_percent_digits():
    assert share() >= 0.6


def test_68_percent_digits():
    assert share() >= 0.68


def test_76_percent_digits():
    assert share() >= 0.76


def test_85_percent_digits():
    assert share() >= 0.85
