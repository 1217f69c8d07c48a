def lines(path):
    return [f"{index} {index + 1} {path}" for index in range(6)]
