from model import Encoder, ScheduledOptim


def get_model():
    net = Encoder()
    return net, ScheduledOptim(net)
