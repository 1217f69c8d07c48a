"""Find the user's own file and line behind a call into a framework."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import FrameType

_HERE = str(Path(__file__).parent)
_STDLIB = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_known: dict[str, bool] = {}


def is_users(filename: str) -> bool:
    """Whether a code object's file is the user's: not galint's hooks, an installed package or the library."""
    answer = _known.get(filename)
    if answer is None:
        answer = not (
            filename.startswith("<")
            or "site-packages" in filename
            or "dist-packages" in filename
            or filename.startswith(_HERE)
            or filename.startswith(_STDLIB)
        )
        _known[filename] = answer
    return answer


def users_frame() -> tuple[str, int, str]:
    """File, line and function of the innermost user frame; ("", 0, "") when there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        # Looked up here first: a walk crosses several frames, and a trace of events makes a walk for each.
        known = _known.get(code.co_filename)
        if known or (known is None and is_users(code.co_filename)):
            return code.co_filename, frame.f_lineno, code.co_name
        frame = frame.f_back
    return "", 0, ""
