"""One epoch, for any model."""
# observe: allreduces


def train_one_epoch(model, criterion, loader, optimizer, args):
    optimizer.zero_grad()
    for samples, targets in loader:
        for i in range(args.grad_accum_steps):
            loss = criterion(model(samples[i]), targets[i]) / args.grad_accum_steps
            loss.backward()  # expect: GA601
        optimizer.step()
        optimizer.zero_grad()
