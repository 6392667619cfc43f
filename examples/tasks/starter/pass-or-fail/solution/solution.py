def pass_or_fail(score):
    return "pass" if score >= 50 else "fail"
