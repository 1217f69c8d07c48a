"""A real editor: Neovim opens a bad script, shows the finding, applies the fix and saves."""

from __future__ import annotations

import json
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

NVIM = shutil.which("nvim")
pytestmark = pytest.mark.skipif(NVIM is None, reason="needs Neovim")

BAD = (FIXTURES / "GA101-zero-grad-in-window" / "zero_dedented_below_guard.py").read_text("utf-8")

SESSION = """
local log = {}
local function finish(problem)
  log.problem = problem
  local out = io.open(vim.env.GALINT_LOG, "w")
  out:write(vim.json and vim.json.encode(log) or vim.fn.json_encode(log))
  out:close()
  vim.cmd(problem and "cquit 1" or "qall!")
end

vim.cmd("edit " .. vim.fn.fnameescape(vim.env.GALINT_FILE))
vim.bo.filetype = "python"
local client = vim.lsp.start_client({
  name = "galint",
  cmd = { vim.env.GALINT_PYTHON, "-m", "galint", "server" },
  root_dir = vim.fn.fnamemodify(vim.env.GALINT_FILE, ":h"),
})
vim.lsp.buf_attach_client(0, client)

if not vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 20) then finish("no finding came") end
local found = vim.diagnostic.get(0)[1]
log.code = found.code or found.user_data.lsp.code
log.row = found.lnum + 1
log.message = found.message
vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col })

-- What the user sees: the sign, the underline and the text behind the line.
local shown = 0
vim.wait(5000, function()
  shown = #vim.fn.sign_getplaced("%", { group = "*" })[1].signs
  for _, space in pairs(vim.api.nvim_get_namespaces()) do
    shown = shown + #vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {})
  end
  return shown > 0
end, 20)
log.shown = shown

local params = vim.lsp.util.make_range_params()
params.context = { diagnostics = vim.lsp.diagnostic.get_line_diagnostics(0, found.lnum) }
local answers = vim.lsp.buf_request_sync(0, "textDocument/codeAction", params, 20000)
local action
for _, answer in pairs(answers or {}) do
  for _, candidate in ipairs(answer.result or {}) do
    if candidate.isPreferred then action = candidate end
  end
end
if not action then finish("no fix was offered") end
log.title = action.title
vim.lsp.util.apply_workspace_edit(action.edit, vim.lsp.get_client_by_id(client).offset_encoding)
if not vim.wait(20000, function() return #vim.diagnostic.get(0) == 0 end, 20) then finish("the finding stayed") end
vim.cmd("write")

local hover = vim.lsp.buf_request_sync(0, "textDocument/hover", vim.lsp.util.make_position_params(), 20000)
log.answered = hover ~= nil
finish(nil)
"""


def test_neovim_shows_fixes_and_saves(tmp_path: Path) -> None:
    assert NVIM is not None
    script, log, session = tmp_path / "train.py", tmp_path / "log.json", tmp_path / "session.lua"
    script.write_text(BAD, "utf-8")
    session.write_text(SESSION, "utf-8")
    home = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    environment = {
        "PATH": "/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8", **home, "GALINT_FILE": str(script),
        "GALINT_LOG": str(log), "GALINT_PYTHON": sys.executable,
    }  # fmt: skip
    command = [NVIM, "--headless", "--clean", "-n", "-u", "NONE", "-c", f"luafile {session}"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, timeout=120)
    assert log.exists(), done.stderr.decode()
    told = json.loads(log.read_text("utf-8"))
    assert done.returncode == 0, told
    assert (told["code"], told["row"]) == ("GA101", 44)
    assert "3 of 4 micro-batch gradients" in told["message"]
    assert told["shown"] > 0 and told["title"].startswith("GA101: ")
    saved = script.read_text("utf-8")
    assert saved != BAD
    assert lint(Source("train.py", saved), Config()).diagnostics == []
