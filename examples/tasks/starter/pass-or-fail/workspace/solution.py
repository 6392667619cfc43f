def pass_or_fail(score):
    pass
