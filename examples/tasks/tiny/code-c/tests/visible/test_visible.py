def text():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        return file.read()


def longest_run():
    """Characters in the longest run of digits."""
    longest = current = 0
    for character in text():
        current = current + 1 if character in "0123456789" else 0
        longest = max(longest, current)
    return longest


def test_8_digits_in_a_row():
    assert longest_run() >= 8
