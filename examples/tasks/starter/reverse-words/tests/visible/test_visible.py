from solution import reverse_words


def test_example_1():
    assert reverse_words(["ab", "cd"]) == ["ba", "dc"]


def test_example_2():
    assert reverse_words(["hello"]) == ["olleh"]
