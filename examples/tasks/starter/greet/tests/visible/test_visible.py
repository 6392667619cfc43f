from solution import greet


def test_example_1():
    assert greet("Ann") == "Hello, Ann!"


def test_example_2():
    assert greet("Bob") == "Hello, Bob!"
