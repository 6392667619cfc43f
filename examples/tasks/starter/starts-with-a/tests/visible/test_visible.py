from solution import starts_with_a


def test_example_1():
    assert starts_with_a("apple") is True


def test_example_2():
    assert starts_with_a("banana") is False
