def list_length(items):
    pass
