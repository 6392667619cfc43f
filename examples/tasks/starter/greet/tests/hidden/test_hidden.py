from solution import greet


def test_one_letter():
    assert greet("X") == "Hello, X!"


def test_two_names():
    assert greet("Ann Lee") == "Hello, Ann Lee!"


def test_lower_case():
    assert greet("tim") == "Hello, tim!"


def test_empty():
    assert greet("") == "Hello, !"
