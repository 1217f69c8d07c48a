"""The colours and type of the drawn windows: one style sheet, light and dark by the reader's preference."""

from __future__ import annotations

_LIGHT = {
    "paper": "#ffffff", "panel": "#f6f7f9", "ink": "#1c2128", "dim": "#5b6470", "line": "#d3d8de",
    "grad": "#2f6fd0", "ongrad": "#ffffff", "mean": "#dbe7fb", "onmean": "#1d4a94",
    "scaled": "#f2b233", "onscaled": "#3b2800", "clear": "#c22f2a", "clearsoft": "#fdeceb",
    "step": "#18733a", "stepsoft": "#e4f5e9", "sync": "#6b46c1", "soft": "#eceff3", "scalesoft": "#fdf3dd",
    "scaleink": "#7a5200",
}  # fmt: skip
_DARK = {
    "paper": "#12161c", "panel": "#1a2028", "ink": "#e6eaf0", "dim": "#9aa5b3", "line": "#38414d",
    "grad": "#6ea8ff", "ongrad": "#08203f", "mean": "#22395c", "onmean": "#b9d3ff",
    "scaled": "#d9a13a", "onscaled": "#211600", "clear": "#ff8b85", "clearsoft": "#45201f",
    "step": "#6fd694", "stepsoft": "#163322", "sync": "#b9a0ff", "soft": "#262e38", "scalesoft": "#3b2f16",
    "scaleink": "#f0c56b",
}  # fmt: skip

_RULES = """
text{font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
.lane,.side,.quiet{fill:var(--dim);font-size:11px}
.side{font-size:12px;fill:var(--ink)}
.name{font-weight:600}.name.lost,.clear text{fill:var(--clear)}
.flow{stroke:var(--line);stroke-width:1.5;fill:none}.flow.lost{stroke-dasharray:3 3}.flow.waiting{stroke-dasharray:2 4}
.pill{fill:var(--soft);stroke:var(--line)}.pill.scale{fill:var(--scalesoft);stroke:var(--scaled)}
.pilltext{font-size:11.5px}
.grad{fill:var(--grad)}.onblock{fill:var(--ongrad);font-size:10.5px}
.scaled{fill:var(--scaled)}.onscaled{fill:var(--onscaled);font-size:10.5px}
.mean{fill:var(--mean)}.onmean{fill:var(--onmean);font-size:10.5px}
.ghost{fill:none;stroke:var(--clear);stroke-dasharray:3 2}.cross{stroke:var(--clear);stroke-width:1.2}
.stale{fill:var(--clearsoft);stroke:var(--clear)}
.axis,.rule{stroke:var(--line);fill:none}
.sync{stroke:var(--sync);fill:none;stroke-width:1.4}.synctext{fill:var(--sync);font-size:11px}
.chip{fill:var(--soft)}.chiptext{font-size:11px}
.chip.clear.alarm{fill:var(--clearsoft);stroke:var(--clear)}.chiptext.alarm{fill:var(--clear);font-weight:600}
.chip.step{fill:var(--stepsoft);stroke:var(--step)}.steptext{fill:var(--step);font-weight:600}
.chip.unscale,.chip.update{fill:var(--scalesoft)}.unscaletext,.updatetext{fill:var(--scaleink)}
.verdict{font-weight:600}.verdict.same{fill:var(--step)}.verdict.different{fill:var(--clear)}
.heading{font-size:15px;font-weight:600}
.formula,.code,.number{font:12px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
.number{fill:var(--dim)}.gate{fill:var(--dim)}
.paper{fill:var(--paper)}.panel{fill:var(--panel);stroke:var(--line)}
.hit{fill:var(--soft)}.hit.step{fill:var(--stepsoft)}.hit.alarm{fill:var(--clearsoft)}.hit.unscale{fill:var(--scalesoft)}
.bad{fill:var(--clear)}.good{fill:var(--step)}
"""


def _variables(colors: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colors.items())


def sheet(root: str = "svg") -> str:
    """The style sheet; the variables are set on `root`."""
    dark = f"@media (prefers-color-scheme:dark){{{root}{{color-scheme:dark;{_variables(_DARK)}}}}}"
    return f"{root}{{color-scheme:light;{_variables(_LIGHT)}}}{dark}{_RULES}"
