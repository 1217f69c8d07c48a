"""A run may end after so many batches: that bound says nothing about the windows, of which the first is short."""
# observe: params


def fit(net, optimizer, batches, options, n):
    seen = 0
    for _ in range(options.rounds):
        for index, batch in enumerate(batches):
            seen += 1
            if options.last_batch > 0 and seen > options.last_batch:
                break
            loss = net(**batch).loss / n
            loss.backward()
            if index % n == 0 or index == len(batches) - 1:  # expect: GA401
                optimizer.step()
                optimizer.zero_grad()
