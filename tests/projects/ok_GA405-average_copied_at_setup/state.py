class TrainState:
    def __init__(self, net, net_ema, optimizer, step=0):
        self.net = net
        self.net_ema = net_ema
        self.optimizer = optimizer
        self.step = step

    def ema_update(self, rate=0.9999):
        for slow, fast in zip(self.net_ema.parameters(), self.net.parameters(), strict=True):
            slow.data.mul_(rate).add_(fast.data, alpha=1 - rate)


def make_state(config, build):
    state = TrainState(build(config), build(config), config.optimizer)
    state.ema_update(0)
    return state
