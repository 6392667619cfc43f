from solution import first_word


def test_example_1():
    assert first_word("hello big world") == "hello"


def test_example_2():
    assert first_word("one") == "one"
