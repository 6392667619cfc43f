from solution import word_lengths


def test_example_1():
    assert word_lengths(["hi", "hello"]) == [2, 5]


def test_example_2():
    assert word_lengths(["a"]) == [1]
