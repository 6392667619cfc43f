def second(items):
    pass
