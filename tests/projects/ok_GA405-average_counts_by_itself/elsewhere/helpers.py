def update_model_ema(settings, network, ema, cur_iter):
    if cur_iter % settings.average_every == 0:
        ema.update(network)
