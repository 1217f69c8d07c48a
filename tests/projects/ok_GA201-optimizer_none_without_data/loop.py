def train_one_epoch(model, data, epoch, optimizer):
    for batch in data:
        if isinstance(optimizer, dict):
            for o in optimizer.values():
                o.zero_grad()
        else:
            optimizer.zero_grad()
        loss = model(batch).mean()
        if isinstance(optimizer, dict):
            loss.backward()
            for o in optimizer.values():
                o.step()
        else:
            loss.backward()
            optimizer.step()
