from solution import pass_or_fail


def test_example_1():
    assert pass_or_fail(70) == "pass"


def test_example_2():
    assert pass_or_fail(30) == "fail"
