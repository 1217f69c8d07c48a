"""Each batch is learned by a method of a class whose base, which counts the batches, is out of sight."""
# observe: params

from learning import Learner


class Prompts(Learner):
    def learn(self, x, y):
        self.opt.zero_grad()  # expect: GA101
        loss = self.loss(self.net(x), y)
        (loss / float(self.args.gather)).backward()
        if (self.seen > 0 or self.args.gather == 1) and self.seen % self.args.gather == 0:
            self.opt.step()
            self.opt.zero_grad()
        return loss.item()
