"""Each batch is cut into as many pieces as a setting says, unless that is one."""
# observe: params


def cut(settings, pictures, labels):
    count = settings.pieces
    if count == 1:
        return [pictures], [labels]
    return pictures.chunk(count), labels.chunk(count)


def train(settings, network, optimizer, criterion, loader):
    for pictures, labels in loader:
        optimizer.zero_grad()
        for piece, wanted in zip(*cut(settings, pictures, labels)):
            criterion(network(piece), wanted).backward()  # expect: GA201
        optimizer.step()


def train_well(settings, network, optimizer, criterion, loader):
    for pictures, labels in loader:
        some, wanted = cut(settings, pictures, labels)
        optimizer.zero_grad()
        for picture, label in zip(some, wanted):
            criterion(network(picture), label).backward()
        for parameter in network.parameters():
            parameter.grad.data.div_(settings.pieces)
        optimizer.step()
