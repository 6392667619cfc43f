from solution import capitalize_word


def test_example_1():
    assert capitalize_word("hello") == "Hello"


def test_example_2():
    assert capitalize_word("sun") == "Sun"
