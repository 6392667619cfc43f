from solution import word_lengths


def test_empty():
    assert word_lengths([]) == []


def test_empty_string():
    assert word_lengths(["", "abc"]) == [0, 3]


def test_same_words():
    assert word_lengths(["go", "go"]) == [2, 2]


def test_longer():
    assert word_lengths(["one", "two", "three", "four"]) == [3, 3, 5, 4]
