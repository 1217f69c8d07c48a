"""A run that is continued only evaluates; one that begins trains."""
# observe: params

import torch
from settings import get_parser, read
from torch import nn
from torch.nn.functional import mse_loss

if __name__ == "__main__":
    args = get_parser().parse_args([])
    from_scratch = True
    if args.continue_folder:
        from_scratch = False
        folder = args.continue_folder
        config = read(folder)
    else:
        if not args.run_name:
            raise ValueError("--run-name is missing")
        folder = args.run_name
        config = read(folder)

    torch.manual_seed(0)
    network = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    batches = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(8)]
    done = []
    if "freeze" in config:
        done.append("freeze")
    if "mixed" in config:
        done.append("mixed")
    if "sparse" in config:
        done.append("sparse")
    if "pairwise" in config:
        done.append("pairwise")
    if "listwise" in config:
        done.append("listwise")
    if "spans" in config:
        done.append("spans")
    if "teacher" in config:
        done.append("teacher")
    if "warm" in config:
        done.append("warm")
    if "cached" in config:
        done.append("cached")
    if "early" in config:
        done.append("early")
    if "tests" in config:
        done.append("tests")
    if "boards" in config:
        done.append("boards")
    if from_scratch:
        for _ in range(config["epochs"]):
            for number, (inputs, targets) in enumerate(batches, 1):
                loss = mse_loss(network(inputs), targets)
                loss.backward()  # expect: GA201
                if number % config["accumulation"] == 0:
                    optimizer.step()
                    optimizer.zero_grad()
    with torch.no_grad():
        print(sum(mse_loss(network(inputs), targets) for inputs, targets in batches))
