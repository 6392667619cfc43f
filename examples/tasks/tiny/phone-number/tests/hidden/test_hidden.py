"""Each test asks for a larger share of digits, so that a better answer earns more."""


def share():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        text = file.read().strip("\n")
    return sum(c in "0123456789" for c in text) / len(text) if len(text) >= 4 else 0.0


def test_some_answer_of_digits():
    assert share() > 0.0


def test_10_percent():
    assert share() >= 0.1


def test_20_percent():
    assert share() >= 0.2


def test_30_percent():
    assert share() >= 0.3


def test_40_percent():
    assert share() >= 0.4


def test_50_percent():
    assert share() >= 0.5


def test_60_percent():
    assert share() >= 0.6
