"""The engine's settings say that it gathers nothing: the program counts the micro-batches, and divides by itself."""

import deepspeed
from torch.nn.functional import cross_entropy


def settings_of(options):
    settings = {"train_micro_batch_size_per_gpu": options.size, "gradient_accumulation_steps": 1}
    if options.half:
        settings["fp16"] = {"enabled": True}
    return settings


def train(options, network, stream):
    engine, _, _, _ = deepspeed.initialize(model=network, config=settings_of(options))
    for _ in range(options.updates):
        for _ in range(options.gather):
            x, y = next(stream)
            out = engine(x)
            loss = cross_entropy(out["scores"], y) / options.gather
            loss = loss + out["balance"]
            engine.backward(loss)  # expect: GA204
        engine.step()
