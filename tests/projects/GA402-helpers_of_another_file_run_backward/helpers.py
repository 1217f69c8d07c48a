"""What a loop in another file calls for each micro-batch."""


def run_forward(network, x, told):
    told["loss"] = network(x).pow(2).mean()
    return told


def run_backward(told):
    (told["loss"] / told["gather"]).backward()
    return told


def update(optimizer, told):
    if (told["number"] + 1) % told["gather"] == 0:
        optimizer.step()
        optimizer.zero_grad()
    return told
