from solution import average_of_three


def test_zeros():
    assert average_of_three(0, 0, 0) == 0


def test_same():
    assert average_of_three(5, 5, 5) == 5


def test_mixed_signs():
    assert average_of_three(-3, 0, 3) == 0


def test_fraction():
    assert average_of_three(1, 1, 2.5) == 1.5
