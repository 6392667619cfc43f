from solution import count_words


def test_empty():
    assert count_words("") == 0


def test_two():
    assert count_words("a b") == 2


def test_same():
    assert count_words("go go go go") == 4


def test_longer():
    assert count_words("the sun is very bright") == 5
