def text():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        return file.read()


def share():
    """Share of digits; a text of fewer than 8 characters counts as one of 8."""
    answer = text()
    return sum(character in "0123456789" for character in answer) / max(8, len(answer))


def test_8_percent_digits():
    assert share() >= 0.08


def test_16_percent_digits():
    assert share() >= 0.16


def test_24_percent_digits():
    assert share() >= 0.24


def test_32_percent_digits():
    assert share() >= 0.32


def test_40_percent_digits():
    assert share() >= 0.4


def test_48_percent_digits():
    assert share() >= 0.48


def test_56_percent_digits():
    assert share() >= 0.56


def test_64_percent_digits():
    assert share() >= 0.64


def test_72_percent_digits():
    assert share() >= 0.72


def test_80_percent_digits():
    assert share() >= 0.8
