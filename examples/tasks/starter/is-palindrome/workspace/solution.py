def is_palindrome(text):
    pass
