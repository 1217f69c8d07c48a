from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def score(self, x, y):
        logits = self.head(x)
        loss = nn.functional.cross_entropy(logits, y, reduction="sum")
        return loss, (logits.argmax(dim=1) == y).float().mean().item()
