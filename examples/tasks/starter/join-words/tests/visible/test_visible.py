from solution import join_words


def test_example_1():
    assert join_words(["hello", "world"]) == "hello world"


def test_example_2():
    assert join_words(["a"]) == "a"
