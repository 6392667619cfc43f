from solution import in_brackets


def test_example_1():
    assert in_brackets("hello") == "[hello]"


def test_example_2():
    assert in_brackets("a") == "[a]"
