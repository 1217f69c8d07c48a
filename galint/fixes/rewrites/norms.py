"""What is shown for GA501: GroupNorm, whose statistics do not depend on the size of the micro-batch."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.situation import Candidate, Situation
from galint.run.nodes import terminal

_GROUPS = (32, 16, 8, 4, 2)


def batchnorm_small_micro_batch(s: Situation) -> Iterator[Candidate]:
    """GA501: every BatchNorm of the class, or the model's `norm_layer`, as GroupNorm; shown only."""
    call = next((n for n in s.outline.nodes(s.span) if isinstance(n, p.Call)), None)
    if call is None:
        return
    name = terminal(call.func)
    if "BatchNorm" in name and name != "convert_sync_batchnorm":
        owner = next((n for n in s.outline.above(call) if isinstance(n, (p.ClassDef, p.FunctionDef))), None)
        layers = [n for n in (s.outline.walk(owner) if owner is not None else s.outline.everything()) if _is_norm(n)]
        editor = s.editor()
        for layer in layers:
            assert isinstance(layer, p.Call)
            channels = layer.args[0].value
            groups = _groups(channels)
            prefix = s.text(layer.func.value) + "." if isinstance(layer.func, p.Attr) else "torch.nn."
            editor.replace(layer.span, f"{prefix}GroupNorm({groups}, {s.text(channels)})")
        if layers:
            yield s.done(editor, "normalise with GroupNorm instead", Applicability.DISPLAY)
    elif not any(a.keyword == "norm_layer" for a in call.args):
        editor = s.editor()
        end = s.lines.at(call.span)[1] - 1
        row, column = s.lines.place(end)
        more = ", " if call.args else ""
        layer_text = f"{more}norm_layer=lambda channels: torch.nn.GroupNorm(32, channels)"
        editor.replace(type(call.span)(row, column, row, column), layer_text)
        yield s.done(editor, "build the model with GroupNorm", Applicability.DISPLAY)


def _is_norm(node: p.Node) -> bool:
    return (
        isinstance(node, p.Call)
        and "BatchNorm" in terminal(node.func)
        and terminal(node.func) != "convert_sync_batchnorm"
        and bool(node.args)
        and not node.args[0].keyword
        and not node.args[0].star
    )


def _groups(channels: p.Expr) -> int:
    """The largest usual number of groups that divides a known number of channels; 32 for an unknown one."""
    if isinstance(channels, p.Const) and isinstance(channels.value, int):
        number = channels.value
        return next((g for g in _GROUPS if number % g == 0 and number > g), 1)
    return _GROUPS[0]
