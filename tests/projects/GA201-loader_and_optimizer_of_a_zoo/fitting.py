"""A loader of graphs and an optimizer for scans come from packages that hold networks too."""
# observe: params

from monai.optimizers import Novograd
from torch.nn.functional import mse_loss
from torch_geometric.loader import DataLoader


def fit(network, graphs, options):
    optimizer = Novograd(network.parameters(), 0.01)
    batches = DataLoader(graphs, batch_size=8)
    optimizer.zero_grad()
    for number, graph in enumerate(batches):
        mse_loss(network(graph["x"]), graph["y"]).backward()  # expect: GA201 "options.window"
        if (number + 1) % options.window == 0 or number + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
