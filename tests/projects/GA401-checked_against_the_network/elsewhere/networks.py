import torch


class configuration:
    max_position_embeddings = 1024

    def __init__(self, name):
        torch.manual_seed(len(name))

    def batches(self):
        for _ in range(12):
            x = torch.randn(8, 6)
            yield x, x[:, :2].exp()
