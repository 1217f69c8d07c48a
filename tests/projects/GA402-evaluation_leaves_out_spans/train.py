"""What an evaluation leaves out by a bound tells nothing of the batches that the training loop sees."""
# observe: params

import torch


def best(scores, config):
    found = []
    for start in range(3):
        for end in range(3):
            if end - start + 1 > config.longest:
                continue
            found.append((scores[start] + scores[end], start, end))
    return max(found)


def evaluate(model, rows, config):
    model.eval()
    right = 0
    for row in rows:
        right += best(model(row).flatten().tolist(), config)[0] > 0
    model.train()
    return right


def train(model, batches, opt, rows, config):
    for epoch in range(config.epochs):
        for step, (x, y) in enumerate(batches):
            loss = torch.nn.functional.mse_loss(model(x), y) / config.accum
            loss.backward()
            if (step + 1) % config.accum == 0:  # expect: GA402
                opt.step()
                opt.zero_grad()
        print(epoch, evaluate(model, rows, config))
