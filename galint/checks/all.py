"""The checks in the order of their codes; a new rule adds its module here and its line to the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from galint.checks import (
    accumulate_misused,
    backward_outside_window,
    batch_coupled_loss,
    batchnorm_small_micro_batch,
    clip_in_window,
    clip_scaled_gradients,
    ddp_without_no_sync,
    dead_loss_scaling,
    double_scaled_loss,
    dropped_tail_window,
    early_unscale,
    gradients_never_zeroed,
    graph_kept_in_window,
    leaked_tail_window,
    mean_of_token_means,
    no_sync_without_forward,
    partly_scaled_loss,
    scaler_update_in_window,
    scheduler_horizon,
    scheduler_per_micro_batch,
    skipped_micro_batch,
    stale_gradients,
    step_cadence,
    step_in_backward_hook,
    tail_window_scale,
    unscaled_loss,
    unsynchronised_step,
    unsynchronised_tail,
    update_side_effect_in_window,
    zero_grad_in_window,
)
from galint.checks.finding import Finding
from galint.checks.view import View


class Check(NamedTuple):
    """A rule's check and the witness it is asked of."""

    code: str
    witness: str
    run: Callable[[View], Iterator[Finding]]


CHECKS: tuple[Check, ...] = tuple(
    Check(room.CODE, room.WITNESS, room.check)
    for room in (
        zero_grad_in_window,
        gradients_never_zeroed,
        backward_outside_window,
        skipped_micro_batch,
        step_in_backward_hook,
        graph_kept_in_window,
        stale_gradients,
        unscaled_loss,
        double_scaled_loss,
        dead_loss_scaling,
        partly_scaled_loss,
        tail_window_scale,
        mean_of_token_means,
        early_unscale,
        clip_scaled_gradients,
        clip_in_window,
        scaler_update_in_window,
        step_cadence,
        leaked_tail_window,
        dropped_tail_window,
        scheduler_per_micro_batch,
        update_side_effect_in_window,
        scheduler_horizon,
        batchnorm_small_micro_batch,
        batch_coupled_loss,
        ddp_without_no_sync,
        no_sync_without_forward,
        unsynchronised_step,
        unsynchronised_tail,
        accumulate_misused,
    )
)
