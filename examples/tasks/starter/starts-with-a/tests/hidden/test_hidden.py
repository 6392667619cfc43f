from solution import starts_with_a


def test_one_letter():
    assert starts_with_a("a") is True
    assert starts_with_a("b") is False


def test_case_matters():
    assert starts_with_a("Apple") is False


def test_ends_with_a():
    assert starts_with_a("pizza") is False


def test_double():
    assert starts_with_a("aardvark") is True
