"""The function that averages the weights is called for each micro-batch and returns at once, unless its interval has passed."""

from helpers import update_model_ema


def update_ema(settings, network, ema, number):
    every = settings.average_every
    if every is None or every == 0 or number % every != 0:
        return
    ema.update(network)


def update_ema_with_the_window(settings, network, ema, number):
    if number % settings.window != 0:
        return
    ema.update(network)


def fit(settings, network, ema, batches, criterion, optimizer):
    for number in range(1, settings.updates * settings.window + 1):
        pictures, labels = next(batches)
        (criterion(network(pictures), labels) / settings.window).backward()
        if number % settings.window == 0:
            optimizer.step()
            optimizer.zero_grad()
        update_ema(settings, network, ema, number)


def fit_evenly(settings, network, ema, batches, criterion, optimizer):
    for number in range(1, settings.updates * settings.window + 1):
        pictures, labels = next(batches)
        (criterion(network(pictures), labels) / settings.window).backward()
        if number % settings.window == 0:
            optimizer.step()
            optimizer.zero_grad()
        update_ema_with_the_window(settings, network, ema, number)


def fit_out_of_sight(settings, network, ema, batches, criterion, optimizer):
    for number in range(1, settings.updates * settings.window + 1):
        pictures, labels = next(batches)
        (criterion(network(pictures), labels) / settings.window).backward()
        if number % settings.window == 0:
            optimizer.step()
            optimizer.zero_grad()
        update_model_ema(settings, network, ema, cur_iter=number)
