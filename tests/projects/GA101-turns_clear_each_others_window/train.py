"""A model takes turns, and each turn clears what it left in the other's parameters: with it goes the window so far."""


def turn(model, optimizer, batch, number, options, name):
    loss = model(batch, name) / options.gather
    loss.backward()
    if (number + 1) % options.gather == 0:
        optimizer.step()
        optimizer.zero_grad()


def epoch(model, painter_optimizer, critic_optimizer, batches, options):
    painter_optimizer.zero_grad()
    critic_optimizer.zero_grad()
    for number, batch in enumerate(batches):
        turn(model, critic_optimizer, batch, number, options, "critic")
        painter_optimizer.zero_grad()  # expect: GA101 "3 of 4"
        turn(model, painter_optimizer, batch, number, options, "painter")
        critic_optimizer.zero_grad()  # expect: GA101 "3 of 4"
