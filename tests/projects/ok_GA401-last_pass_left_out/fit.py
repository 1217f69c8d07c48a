"""A scene is fitted view by view; after the last view it is only saved."""

import torch
from torch.nn.functional import l1_loss


def fit(options, scene, views, draw, saved_at):
    start = 0
    scene.prepare(options)
    start += 1
    for number in range(start, options.passes + 1):
        scene.lower_rate(number)
        view = views.pick()
        loss = l1_loss(draw(view, scene), view.picture)
        loss.backward()
        with torch.no_grad():
            if number in saved_at:
                scene.save(number)
            if number < options.grow_until:
                scene.grow()
            if number < options.passes:
                scene.optimizer.step()
                scene.optimizer.zero_grad(set_to_none=True)


def fit_in_stages(options, scene, views, draw, passes):
    for number in range(1, passes + 1):
        view = views.pick()
        loss = l1_loss(draw(view, scene), view.picture)
        loss.backward()
        with torch.no_grad():
            if number < options.passes:
                scene.optimizer.step()
                scene.optimizer.zero_grad(set_to_none=True)
