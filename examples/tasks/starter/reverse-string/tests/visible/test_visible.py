from solution import reverse_string


def test_example_1():
    assert reverse_string("hello") == "olleh"


def test_example_2():
    assert reverse_string("ab") == "ba"
