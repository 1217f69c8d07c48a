def cycle(batches):
    while True:
        yield from batches
