def test_answer_has_digits():
    with open("answer.txt", encoding="utf-8", errors="replace") as file:
        text = file.read().strip("\n")
    digits = sum(c in "0123456789" for c in text)
    assert len(text) >= 4 and digits / len(text) >= 0.6, f"{digits} digits in {len(text)} characters"
