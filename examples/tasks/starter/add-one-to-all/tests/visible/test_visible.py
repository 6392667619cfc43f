from solution import add_one


def test_example_1():
    assert add_one([1, 2, 3]) == [2, 3, 4]


def test_example_2():
    assert add_one([9]) == [10]
