def text():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        return file.read()


def digits():
    return sum(character in "0123456789" for character in text())


def test_at_least_1_digits():
    assert digits() >= 1


def test_at_least_2_digits():
    assert digits() >= 2


def test_at_least_3_digits():
    assert digits() >= 3


def test_at_least_4_digits():
    assert digits() >= 4


def test_at_least_6_digits():
    assert digits() >= 6


def test_at_least_7_digits():
    assert digits() >= 7


def test_at_least_8_digits():
    assert digits() >= 8


def test_at_least_9_digits():
    assert digits() >= 9


def test_at_least_10_digits():
    assert digits() >= 10


def test_at_least_11_digits():
    assert digits() >= 11
