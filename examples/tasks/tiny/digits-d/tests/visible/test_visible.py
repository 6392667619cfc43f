def text():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        return file.read()


def digits():
    return sum(character in "0123456789" for character in text())


def test_at_least_10_digits():
    assert digits() >= 10
