from contextlib import nullcontext


def hold_sync(model, enabled):
    return model.no_sync() if enabled else nullcontext()
