from solution import shout


def test_empty():
    assert shout("") == "!"


def test_already_there():
    assert shout("hi!") == "hi!!"


def test_keeps_case():
    assert shout("Stop Now") == "Stop Now!"


def test_digits():
    assert shout("42") == "42!"
