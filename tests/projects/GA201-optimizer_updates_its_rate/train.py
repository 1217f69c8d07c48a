"""N stands in the settings' section about the optimizer, which is made out of sight and holds its own schedule."""

# observe: params
import json
import os

from parts import make
from torch import nn


def main(settings):
    net, optimizer, batches = make(settings)
    accum = settings["optimizer"]["accum"]
    count = 1
    for _ in range(settings["rounds"]):
        for batch in batches:
            loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1)
            loss.backward()  # expect: GA201
            if count % accum == 0:
                nn.utils.clip_grad_norm_(net.parameters(), settings["optimizer"]["largest"])
                optimizer.step_and_update_lr()
                optimizer.zero_grad()
            count += 1


if __name__ == "__main__":
    main(json.loads(os.environ.get("SETTINGS", '{"rounds": 2, "optimizer": {"accum": 4, "largest": 1000.0}}')))
