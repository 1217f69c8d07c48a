"""A dictionary of defaults, which the caller changes, says as little about N as the default of an option."""
# observe: params

import torch


class Tagger:
    def __init__(self, net, args=None):
        self.net = net
        self.args = {"rate": 0.1, "accumulation_steps": 1, "clip": 1.0}
        if args:
            self.args.update(args)

    def fit(self, batches):
        args = self.args
        optimizer = torch.optim.SGD(self.net.parameters(), lr=args["rate"])
        for step, (words, tags) in enumerate(batches):
            loss = torch.nn.functional.cross_entropy(self.net(words), tags)
            if args["accumulation_steps"] > 1:
                loss = loss / args["accumulation_steps"]
            self.net.zero_grad()  # expect: GA101
            loss.backward()
            if (step + 1) % args["accumulation_steps"] == 0:
                torch.nn.utils.clip_grad_norm_(self.net.parameters(), args["clip"])
                optimizer.step()
