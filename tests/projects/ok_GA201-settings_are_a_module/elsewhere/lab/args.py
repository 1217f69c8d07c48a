accumulate = 4
