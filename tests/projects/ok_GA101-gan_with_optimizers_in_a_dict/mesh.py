"""Rounds of the discriminator, then one of the generator; the optimizers come in a dict. Nothing accumulates."""

from parts import REGISTRY, Base, build


@REGISTRY.register_module()
class Mesh(Base):
    def __init__(self, head, disc=None, gan_loss=None, cfg=None):
        super().__init__()
        self.generator = build(head)
        self.with_gan = disc is not None and gan_loss is not None
        if self.with_gan:
            self.discriminator = build(disc)
            self.gan_loss = build(gan_loss)
        self.rounds = 0
        self.cfg = cfg

    def train_step(self, batch, optimizer, **kwargs):
        pose = self.generator(batch["img"])
        if self.cfg["disc_step"] > 0 and self.with_gan:
            scores = self.discriminator(pose.detach()), self.discriminator(batch["real"])
            loss_d, logs = self._parse_losses(self.gan_loss(*scores))
            optimizer["discriminator"].zero_grad()
            loss_d.backward()
            optimizer["discriminator"].step()
            self.rounds = (self.rounds + 1) % self.cfg["disc_step"]
            if self.rounds != 0:
                return {"loss": loss_d, "logs": logs}
        losses = self.loss_mesh(pose, batch["target"])
        if self.with_gan:
            losses["adv"] = self.gan_loss(self.discriminator(pose))
        loss, logs = self._parse_losses(losses)
        optimizer["generator"].zero_grad()
        loss.backward()
        optimizer["generator"].step()
        return {"loss": loss, "logs": logs}
