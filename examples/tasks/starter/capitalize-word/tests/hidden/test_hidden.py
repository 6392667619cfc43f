from solution import capitalize_word


def test_one_letter():
    assert capitalize_word("a") == "A"


def test_two_letters():
    assert capitalize_word("ab") == "Ab"


def test_longer():
    assert capitalize_word("programming") == "Programming"


def test_empty():
    assert capitalize_word("") == ""
