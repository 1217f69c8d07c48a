from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def score(self, x, y):
        logits = self.head(x)
        return nn.functional.cross_entropy(logits, y, reduction="sum"), logits.argmax(dim=1)
