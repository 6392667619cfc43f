from solution import longer


def test_example_1():
    assert longer("hi", "hello") == "hello"


def test_example_2():
    assert longer("python", "go") == "python"
