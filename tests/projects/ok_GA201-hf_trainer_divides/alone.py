"""A Trainer that never accumulates: nothing has to be divided."""

from transformers import Trainer, TrainingArguments


class Alone(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        loss = self.compute_loss(model, self._prepare_inputs(inputs))
        loss.backward()
        return loss.detach()


def main(model, rows, folder):
    arguments = TrainingArguments(folder, per_device_train_batch_size=32, gradient_accumulation_steps=1)
    Alone(model, arguments, train_dataset=rows).train()
