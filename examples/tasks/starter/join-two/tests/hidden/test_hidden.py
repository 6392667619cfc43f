from solution import join_two


def test_same():
    assert join_two("go", "go") == "go go"


def test_digits():
    assert join_two("1", "2") == "1 2"


def test_order():
    assert join_two("b", "a") == "b a"


def test_longer():
    assert join_two("good morning", "everyone") == "good morning everyone"
