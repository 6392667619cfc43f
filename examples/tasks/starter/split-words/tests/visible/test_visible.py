from solution import split_words


def test_example_1():
    assert split_words("one two three") == ["one", "two", "three"]


def test_example_2():
    assert split_words("hello") == ["hello"]
