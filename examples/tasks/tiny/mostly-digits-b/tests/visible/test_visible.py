def text():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        return file.read()


def share():
    """Share of digits; a text of fewer than 8 characters counts as one of 8."""
    answer = text()
    return sum(character in "0123456789" for character in answer) / max(8, len(answer))


def test_75_percent_digits():
    assert share() >= 0.75
