"""A scene is fitted view by view, several views a step; after the last view it is only saved."""
# observe: params

import torch
from torch.nn.functional import l1_loss


def fit(options, scene, views, draw):
    for number in range(1, options.passes + 1):
        view = views.pick()
        loss = l1_loss(draw(view, scene), view.picture)
        loss.backward()  # expect: GA201 "`options.gather` = 4"
        with torch.no_grad():
            if number < options.passes and number % options.gather == 0:
                scene.optimizer.step()
                scene.optimizer.zero_grad(set_to_none=True)
