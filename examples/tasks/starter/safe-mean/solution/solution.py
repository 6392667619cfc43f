def safe_mean(numbers):
    return sum(numbers) / len(numbers) if numbers else 0
