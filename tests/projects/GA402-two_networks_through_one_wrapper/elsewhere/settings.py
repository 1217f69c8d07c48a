"""Settings that are read somewhere else."""


class Settings(dict):
    __getattr__ = dict.__getitem__


def parse_configs():
    return Settings(gather=4, optim={"lr": 0.05}, optim_judge={"lr": 0.05})
