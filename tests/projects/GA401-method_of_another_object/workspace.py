"""`simulator.run` of an object that is not seen is called inside the workspace's own `run`: no recursion."""
# observe: params

from tools import batches, build_model, build_optimizer, simulator


class Workspace:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = build_model(cfg)
        self.optimizer = build_optimizer(cfg, params=self.model.parameters())
        self.global_step = 0

    def run(self):
        cfg = self.cfg
        for _ in range(cfg.epochs):
            for batch in batches(cfg):
                loss = self.model.compute_loss(batch) / cfg.accumulate_every
                loss.backward()
                if self.global_step % cfg.accumulate_every == 0:  # expect: GA401
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                if self.global_step % cfg.eval_every == 0:
                    self.model.eval()
                    simulator.run(self.model)
                    self.model.train()
                self.global_step += 1
