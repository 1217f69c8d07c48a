"""What is done once the gradient of a window, as backward left it, is whole."""


def finish(optimizer):
    optimizer.step()
