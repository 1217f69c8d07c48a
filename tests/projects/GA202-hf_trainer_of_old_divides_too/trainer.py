"""Without `num_items_in_batch` this is for a Trainer before 4.46, whose Accelerator was made with N and divides itself."""

from torch import nn
from transformers import Trainer


class DistillingTrainer(Trainer):
    def training_step(self, model, inputs):
        model.train()
        inputs = self._prepare_inputs(inputs)
        scores = model(inputs["x"])
        loss = nn.functional.cross_entropy(scores, inputs["labels"])
        if self.args.gradient_accumulation_steps > 1:
            loss = loss / self.args.gradient_accumulation_steps
        self.accelerator.backward(loss)  # expect: GA202
        return loss.detach()


class OldTrainer(Trainer):
    def training_step(self, model, inputs):
        model.train()
        loss = self.compute_loss(model, self._prepare_inputs(inputs))
        self.accelerator.backward(loss)
        return loss.detach() / self.args.gradient_accumulation_steps
