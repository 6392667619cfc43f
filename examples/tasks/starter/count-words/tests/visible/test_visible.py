from solution import count_words


def test_example_1():
    assert count_words("one two three") == 3


def test_example_2():
    assert count_words("hello") == 1
