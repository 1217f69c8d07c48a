from contextlib import contextmanager


def learns(network, flag):
    for parameter in network.parameters():
        parameter.requires_grad = flag


@contextmanager
def still(network):
    learns(network, False)
    yield
    learns(network, True)
