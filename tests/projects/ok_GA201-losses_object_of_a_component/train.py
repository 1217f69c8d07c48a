"""A component that galint cannot see returns an object of losses, which divides itself and the losses in it."""


def train_component(component, optimizer, steps: int, accumulation: int, data):
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(accumulation):
            losses = component.compute_loss(data.sample()) / accumulation
            total = losses.total
            total.backward()
        optimizer.step()
