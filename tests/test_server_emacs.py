"""A real editor: Emacs with eglot, set up as the README says, opens a bad script, shows the finding, fixes and saves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from galint.config import Config
from galint.engine import lint
from galint.source import Source
from tests.marks import FIXTURES

ROOT = Path(__file__).resolve().parent.parent
EMACS = shutil.which("emacs")
BAD = (FIXTURES / "GA101-zero-grad-in-window" / "zero_dedented_below_guard.py").read_text("utf-8")

SESSION = """
(package-initialize)
(require 'eglot)
(require 'flymake)
(require 'json)
SETUP
(setq eglot-sync-connect 30 eglot-confirm-server-initiated-edits nil)
(defun shown-soon (wanted)
  (let ((tries 0))
    (while (and (< tries 300) (not (eq wanted (and (flymake-diagnostics) t))))
      (accept-process-output nil 0.1)
      (setq tries (1+ tries)))))
(find-file "train.py")
(apply #'eglot (eglot--guess-contact))
(shown-soon t)
(let* ((found (car (flymake-diagnostics)))
       (at (flymake-diagnostic-beg found))
       (fix (seq-find (lambda (a) (eq t (plist-get a :isPreferred))) (append (eglot-code-actions at at) nil)))
       (row (line-number-at-pos at)))
  (eglot--apply-workspace-edit (plist-get fix :edit))
  (save-buffer)
  (shown-soon nil)
  (princ (concat "TOLD " (json-encode (list (cons 'row row) (cons 'text (flymake-diagnostic-text found))
                                            (cons 'title (plist-get fix :title))
                                            (cons 'left (length (flymake-diagnostics))))) "\\n")))
(eglot-shutdown (eglot--current-server-or-lose))
"""


def has_eglot() -> bool:
    if EMACS is None:
        return False
    probe = [EMACS, "--no-init-file", "--batch", "--eval", "(progn (package-initialize) (require 'eglot))"]
    return subprocess.run(probe, capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(not has_eglot(), reason="needs Emacs with eglot")
def test_emacs_shows_fixes_and_saves(tmp_path: Path) -> None:
    assert EMACS is not None
    found = re.search(r"```elisp\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "train.py").write_text(BAD, "utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / "session.el").write_text(SESSION.replace("SETUP", found[1]), "utf-8")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "galint"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m galint "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{command.parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [EMACS, "--no-init-file", "--batch", "-l", "session.el"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    (told,) = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("TOLD ")] or [done.stderr]
    assert (told["row"], told["left"]) == (44, 0)
    assert "GA101" in told["text"] and "3 of 4 micro-batch gradients" in told["text"]
    assert told["title"].startswith("GA101: ")
    saved = (tmp_path / "train.py").read_text("utf-8")
    assert saved != BAD
    assert lint(Source("train.py", saved), Config()).diagnostics == []
