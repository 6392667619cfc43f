def shout(text):
    return text + "!"
