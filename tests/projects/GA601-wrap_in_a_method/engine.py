# observe: allreduces
def train_one_epoch(model, criterion, loader, optimizer, args):
    for samples, targets in loader:
        for i in range(args.grad_accum_steps):
            part = slice(i * args.sub_batch, (i + 1) * args.sub_batch)
            loss = criterion(model(samples[part]), targets[part])
            loss = loss / args.grad_accum_steps
            loss.backward()  # expect: GA601
        optimizer.step()
        optimizer.zero_grad()
