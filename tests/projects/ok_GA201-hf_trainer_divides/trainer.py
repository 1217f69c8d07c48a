"""Overridden methods of a Trainer that are right: divided by hand, by the item count, or by the Trainer's own method."""

from torch import nn
from transformers import Trainer


class ByHand(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        scores = model(inputs["x"])
        loss = nn.functional.cross_entropy(scores, inputs["labels"])
        return (loss, scores) if return_outputs else loss

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        loss = self.compute_loss(model, inputs)
        if self.args.gradient_accumulation_steps > 1:
            loss = loss / self.args.gradient_accumulation_steps
        self.accelerator.backward(loss)
        return loss.detach()


class ByItems(ByHand):
    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        scores = model(inputs["x"])
        if num_items_in_batch is None:
            loss = nn.functional.cross_entropy(scores, inputs["labels"])
            loss = loss / self.args.gradient_accumulation_steps
        else:
            loss = nn.functional.cross_entropy(scores, inputs["labels"], reduction="sum") / num_items_in_batch
        loss.backward()
        return loss.detach()


class Watching(ByHand):
    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = super().training_step(model, inputs, num_items_in_batch)
        self.log({"seen": float(loss)})
        return loss


class Unaccumulated(Trainer):
    def training_step(self, *args):
        loss = super().training_step(*args)
        return loss
