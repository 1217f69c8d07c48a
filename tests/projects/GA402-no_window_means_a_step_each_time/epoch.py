"""Without a window there is a step for each micro-batch; with one, the last micro-batches wait for the next epoch."""
# observe: params


def one_epoch(settings, network, optimizer, criterion, loader):
    for number, (pictures, labels) in enumerate(loader):
        loss = criterion(network(pictures), labels)
        if settings.window is not None:
            loss = loss / settings.window
        loss.backward()
        if settings.window is None:
            optimizer.step()
            optimizer.zero_grad()
        elif (number + 1) % settings.window == 0:  # expect: GA402
            optimizer.step()
            optimizer.zero_grad()


def one_plain_epoch(settings, network, optimizer, criterion, loader):
    for number, (pictures, labels) in enumerate(loader):
        if settings.plain:
            optimizer.zero_grad()
            criterion(network(pictures), labels).backward()
            optimizer.step()
        else:
            (criterion(network(pictures), labels) / settings.window).backward()
            if (number + 1) % settings.window == 0:  # expect: GA402
                optimizer.step()
                optimizer.zero_grad()


def fit(settings, network, optimizer, criterion, loader):
    for _ in range(settings.epochs):
        one_epoch(settings, network, optimizer, criterion, loader)


def fit_plainly(settings, network, optimizer, criterion, loader):
    for _ in range(settings.epochs):
        one_plain_epoch(settings, network, optimizer, criterion, loader)
