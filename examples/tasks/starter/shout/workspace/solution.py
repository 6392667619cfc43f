def shout(text):
    pass
