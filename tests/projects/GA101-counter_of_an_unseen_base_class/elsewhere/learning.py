class Learner:
    def __init__(self, net, loss, opt, args):
        self.net, self.loss, self.opt, self.args = net, loss, opt, args
        self.seen = 0

    def run(self, loader):
        for x, y in loader:
            self.learn(x, y)
            self.seen += 1
