def list_length(items):
    return len(items)
