"""Without a scaler the network is DeepSpeed's engine; the number in the signature is one batch, or two, by default."""

import deepspeed  # noqa: F401


def one_epoch(model, handler, batches, optimizer, scaler, update_freq: int = 1):
    if scaler is None:
        model.zero_grad()
        model.micro_steps = 0
    else:
        optimizer.zero_grad()
    for step, batch in enumerate(batches):
        loss = handler(model, batch)
        if scaler is None:
            loss /= update_freq
            model.backward(loss)  # expect: GA202 "1/4 of"
            model.step()
        else:
            loss /= update_freq
            full = (step + 1) % update_freq == 0
            scaler(loss, optimizer, parameters=model.parameters(), update_grad=full)  # expect: GA403
            if full:
                optimizer.zero_grad()


def finetune(engine, handler, batches, gradient_accumulation_steps: int = 2):
    for batch in batches:
        loss = handler(engine, batch) / gradient_accumulation_steps
        engine.backward(loss)  # expect: GA202 "1/2 of"
        engine.step()
