class Progress:
    step = 0
    samples = 0
