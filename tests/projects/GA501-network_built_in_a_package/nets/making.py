"""Which network a name stands for."""

from .plain import Plain


def build_network(name, classes):
    if name == "plain":
        network = Plain(classes)
    else:
        raise ValueError(name)
    return network, name
