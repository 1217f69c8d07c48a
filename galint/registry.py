"""The hand-written list of all rules. Codes are stable for ever once released."""

from __future__ import annotations

from galint.rule import Fixability, Rule, Severity

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE
_NEVER, _SOME = Fixability.NEVER, Fixability.SOMETIMES

# One line a rule, however long.
# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("GA000", "syntax-error", _E, _NEVER, "the file is not valid Python, so it was not analysed"),
    Rule("GA001", "unused-ignore", _N, _SOME, "an ignore comment suppresses nothing, or names no rule"),
    Rule("GA101", "zero-grad-in-window", _E, _SOME, "gradients are cleared between a micro-batch's backward and its step"),
    Rule("GA102", "gradients-never-zeroed", _E, _SOME, "a step applies gradients that an earlier step already applied"),
    Rule("GA103", "backward-outside-window", _E, _SOME, "backward runs only on the stepping micro-batch"),
    Rule("GA104", "skipped-micro-batch", _W, _NEVER, "a rare `continue` skips the step at a boundary, so two windows merge"),
    Rule("GA105", "step-in-backward-hook", _E, _NEVER, "a hook steps the optimizer inside backward, so nothing accumulates"),
    Rule("GA106", "graph-kept-in-window", _W, _SOME, "losses are summed and backward runs once, so every graph is kept"),
    Rule("GA107", "stale-gradients", _W, _NEVER, "one loss leaves gradients that another optimizer applies later"),
    Rule("GA201", "unscaled-loss", _E, _SOME, "N mean losses are summed without 1/N"),
    Rule("GA202", "double-scaled-loss", _E, _SOME, "the loss is divided by N twice"),
    Rule("GA203", "dead-loss-scaling", _E, _SOME, "the loss is divided after backward, where it changes only the log"),
    Rule("GA204", "partly-scaled-loss", _E, _SOME, "one term of the loss is divided by N, another is not"),
    Rule("GA205", "tail-window-scale", _N, _SOME, "a short last window is divided by N, not by its length"),
    Rule("GA206", "mean-of-token-means", _N, _NEVER, "token means are averaged over micro-batches of different token counts"),
    Rule("GA301", "early-unscale", _E, _SOME, "`unscale_` runs before the window's last backward"),
    Rule("GA302", "clip-scaled-gradients", _E, _SOME, "clipping sees gradients still multiplied by the loss scale"),
    Rule("GA303", "clip-in-window", _W, _SOME, "clipping runs on every micro-batch instead of once before the step"),
    Rule("GA304", "scaler-update-in-window", _E, _SOME, "`update()` changes the loss scale inside a window"),
    Rule("GA401", "step-cadence", _E, _SOME, "accumulation windows are not N micro-batches long"),
    Rule("GA402", "leaked-tail-window", _W, _SOME, "the partial last window of an epoch is applied with the next epoch's first"),
    Rule("GA403", "dropped-tail-window", _N, _SOME, "the partial last window of an epoch is computed and thrown away"),
    Rule("GA404", "scheduler-per-micro-batch", _W, _SOME, "a per-update scheduler advances every micro-batch"),
    Rule("GA405", "update-side-effect-in-window", _W, _SOME, "what goes by updates runs per micro-batch: an average of the weights, saving"),
    Rule("GA406", "scheduler-horizon", _W, _SOME, "a schedule counted in micro-batches advances per update"),
    Rule("GA501", "batchnorm-small-micro-batch", _W, _NEVER, "BatchNorm statistics come from the micro-batch"),
    Rule("GA502", "batch-coupled-loss", _N, _NEVER, "a contrastive loss sees only the micro-batch's negatives"),
    Rule("GA601", "ddp-without-no-sync", _W, _SOME, "gradients are all-reduced on every micro-batch"),
    Rule("GA602", "no-sync-without-forward", _W, _SOME, "`no_sync` wraps only the backward, so it is inert"),
    Rule("GA603", "unsynchronised-step", _E, _SOME, "a step applies gradients that were never all-reduced"),
    Rule("GA701", "accumulate-misused", _E, _SOME, "`accumulate()` is never entered, nested, given a list, without N, or has a bare backward"),
)
# fmt: on
