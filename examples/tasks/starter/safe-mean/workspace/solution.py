def safe_mean(numbers):
    pass
