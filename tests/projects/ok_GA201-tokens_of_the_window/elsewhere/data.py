import torch


def batch_of(dataset, indices):
    rows = [dataset[k] for k in indices]
    return {key: torch.stack([row[key] for row in rows]) for key in rows[0]}
