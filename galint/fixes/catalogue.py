"""Which rewrites each rule has; a new rule's rewrite is one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from galint.fixes import (
    accumulating,
    cadence,
    clearing,
    dividing,
    moving,
    norms,
    splitting,
    syncing,
    tails,
    terms,
    unscaling,
)
from galint.fixes.situation import Candidate, Situation

Rewrite = Callable[[Situation], Iterator[Candidate]]

REWRITES: dict[str, Rewrite] = {
    "GA101": clearing.zero_grad_in_window,
    "GA102": clearing.gradients_never_zeroed,
    "GA103": moving.backward_outside_window,
    "GA106": splitting.graph_kept_in_window,
    "GA201": dividing.unscaled_loss,
    "GA202": terms.double_scaled_loss,
    "GA203": dividing.dead_loss_scaling,
    "GA204": terms.partly_scaled_loss,
    "GA205": tails.short_window,
    "GA301": unscaling.early_unscale,
    "GA302": unscaling.clip_scaled_gradients,
    "GA303": moving.clip_in_window,
    "GA304": moving.scaler_update_in_window,
    "GA401": cadence.step_cadence,
    "GA402": tails.partial_window,
    "GA403": tails.partial_window,
    "GA404": moving.scheduler_per_micro_batch,
    "GA405": moving.update_side_effect_in_window,
    "GA406": moving.scheduler_horizon,
    "GA501": norms.batchnorm_small_micro_batch,
    "GA601": syncing.ddp_without_no_sync,
    "GA602": syncing.no_sync_without_forward,
    "GA603": syncing.unsynchronised_step,
    "GA701": accumulating.accumulate_misused,
}
