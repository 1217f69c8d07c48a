"""Overridden `training_step`s that leave out what the Trainer's own one does: divide by N before the backward."""

from torch import nn
from transformers import Trainer


class FocalTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        scores = model(inputs["x"])
        loss = nn.functional.cross_entropy(scores, inputs["labels"])
        return (loss, scores) if return_outputs else loss

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
        self.accelerator.backward(loss)  # expect: GA201
        return loss.detach() / self.args.gradient_accumulation_steps


class PlainTrainer(FocalTrainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        loss = self.compute_loss(model, inputs)
        loss.backward()  # expect: GA201
        return loss.detach()
