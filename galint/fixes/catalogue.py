"""Which rewrites each rule has; a new rule's rewrite is one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from galint.fixes import cadence, clearing, dividing, norms, syncing, tails, unscaling
from galint.fixes.situation import Candidate, Situation

Rewrite = Callable[[Situation], Iterator[Candidate]]

REWRITES: dict[str, Rewrite] = {
    "GA101": clearing.zero_grad_in_window,
    "GA102": clearing.gradients_never_zeroed,
    "GA201": dividing.unscaled_loss,
    "GA203": dividing.dead_loss_scaling,
    "GA301": unscaling.early_unscale,
    "GA302": unscaling.clip_scaled_gradients,
    "GA401": cadence.step_cadence,
    "GA402": tails.partial_window,
    "GA403": tails.partial_window,
    "GA501": norms.batchnorm_small_micro_batch,
    "GA601": syncing.ddp_without_no_sync,
    "GA602": syncing.no_sync_without_forward,
}
