"""The parts' losses are summed: each is already divided by the size of the whole batch."""

import torch
from charts import Charts
from torch.utils.data import DataLoader


def run(samples):
    network = Charts(6)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    loader = DataLoader(samples, batch_size=8, collate_fn=network.cut)
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            for _size, part in batch:
                loss = network.compute_loss(part)
                if float(loss) > 0:
                    loss.backward()
            optimizer.step()


if __name__ == "__main__":
    run([torch.randn(6) for _ in range(16)])
