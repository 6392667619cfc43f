def largest_or_none(numbers):
    return max(numbers) if numbers else None
