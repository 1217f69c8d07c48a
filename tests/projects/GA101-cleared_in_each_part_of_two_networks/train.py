"""Two networks in turn, each over several parts; one of them is cleared before each part."""
# observe: params

from torch.nn.functional import binary_cross_entropy_with_logits as bce


def train(maker, judge, make_optimizer, judge_optimizer, loader, noise, ones, zeros, parts):
    for _ in range(4):
        judge_optimizer.zero_grad()
        for _ in range(parts):
            real = next(loader)
            fake = maker(noise()).detach()
            wrong = (bce(judge(real), ones) + bce(judge(fake), zeros)) / parts
            wrong.backward()
        judge_optimizer.step()
        for _ in range(parts):
            make_optimizer.zero_grad()  # expect: GA101
            seen = bce(judge(maker(noise())), ones) / parts
            seen.backward()
        make_optimizer.step()
