"""The language server end to end: a real client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")
pytest.importorskip("pytest_lsp")

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

from galint.config import Config
from galint.engine import lint
from galint.source import Source
from tests.marks import FIXTURES

SCRIPT = FIXTURES / "GA101-zero-grad-in-window" / "zero_dedented_below_guard.py"
BAD = SCRIPT.read_text("utf-8")
FIXED = SCRIPT.with_name("zero_dedented_below_guard.fixed.py").read_text("utf-8")
COMMAND = [sys.executable, "-m", "galint", "server"]
WAIT = 20.0
WHOLE = types.Range(types.Position(0, 0), types.Position(9999, 0))

pytestmark = pytest.mark.asyncio(loop_scope="function")


def capabilities(**general: Any) -> types.ClientCapabilities:
    return types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            configuration=True,
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
        ),
        general=types.GeneralClientCapabilities(**general),
    )


@pytest_lsp.fixture(config=ClientServerConfig(server_command=COMMAND))
async def client(lsp_client: LanguageClient, tmp_path: Path) -> AsyncIterator[None]:
    @lsp_client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
    def refresh(params: None) -> None:
        return None

    @lsp_client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        return None

    params = types.InitializeParams(
        capabilities=capabilities(), workspace_folders=[types.WorkspaceFolder(tmp_path.as_uri(), "w")]
    )
    await lsp_client.initialize_session(params)
    yield
    await lsp_client.shutdown_session()


class Document:
    """One open text of the client."""

    def __init__(self, client: LanguageClient, uri: str, text: str) -> None:
        self.client, self.uri, self.version, self.text = client, uri, 1, text
        client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text)))

    def type(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """One incremental edit; places are (line, character), from 0."""
        self.version += 1
        edge = types.Range(types.Position(*start), types.Position(*end))
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri),
                [types.TextDocumentContentChangePartial(edge, text)],
            )
        )

    def replace(self, text: str) -> None:
        """The whole text anew."""
        self.version += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def codes(self, *wanted: str) -> list[types.Diagnostic]:
        """Wait until the findings are these; their codes are compared in order."""
        end = time.monotonic() + WAIT
        while True:
            found = self.client.diagnostics.get(self.uri)
            if found is not None and [d.code for d in found] == list(wanted):
                return list(found)
            if time.monotonic() > end:
                raise AssertionError(f"wanted {wanted}, got {found and [d.code for d in found]}")
            await asyncio.sleep(0.02)

    async def actions(self, where: types.Range, *only: str) -> list[types.CodeAction]:
        """Actions that edit."""
        return [a for a in await self.all_actions(where, *only) if isinstance(a, types.CodeAction)]

    async def all_actions(self, where: types.Range, *only: str) -> list[types.CodeAction | types.Command]:
        """All actions; lsprotocol reads an action that has a command as if it were the command."""
        context = types.CodeActionContext(list(self.client.diagnostics.get(self.uri, ())), only or None)
        params = types.CodeActionParams(types.TextDocumentIdentifier(self.uri), where, context)
        return list(await self.client.text_document_code_action_async(params) or ())

    async def hints(self) -> dict[int, str]:
        """Line (from 1) → label of its inlay hint."""
        params = types.InlayHintParams(types.TextDocumentIdentifier(self.uri), WHOLE)
        found = await self.client.text_document_inlay_hint_async(params)
        return {hint.position.line + 1: str(hint.label) for hint in found or ()}

    async def hover(self, row: int, part: str) -> str:
        """Hover text over a part of a row (from 1)."""
        column = self.text.splitlines()[row - 1].index(part)
        params = types.HoverParams(types.TextDocumentIdentifier(self.uri), types.Position(row - 1, column))
        found = await self.client.text_document_hover_async(params)
        return found.contents.value if found is not None else ""  # type: ignore[union-attr]


def on_disk(client: LanguageClient, folder: Path, text: str, name: str = "train.py") -> Document:
    path = folder / name
    path.write_text(text, "utf-8")
    return Document(client, path.as_uri(), text)


def applied(text: str, edit: types.WorkspaceEdit | None) -> str:
    """The text after the one document's edits of a workspace edit, columns counted in UTF-16."""
    assert edit is not None and edit.document_changes is not None
    (change,) = edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    units = text.encode("utf-16-le")
    lines = text.splitlines(keepends=True)

    def offset(position: types.Position) -> int:
        before = "".join(lines[: position.line])
        return len(before.encode("utf-16-le")) + 2 * position.character

    for one in sorted(change.edits, key=lambda e: -offset(e.range.start)):
        assert isinstance(one, types.TextEdit)
        start, end = offset(one.range.start), offset(one.range.end)
        units = units[:start] + one.new_text.encode("utf-16-le") + units[end:]
    return units.decode("utf-16-le")


# --- findings ----------------------------------------------------------------------------------------


async def test_a_finding_with_all_that_belongs_to_it(client: LanguageClient, tmp_path: Path) -> None:
    (d,) = await on_disk(client, tmp_path, BAD).codes("GA101")
    assert d.severity == types.DiagnosticSeverity.Error and d.source == "galint"
    assert (d.range.start.line, d.range.start.character) == (43, 8)
    assert "3 of 4 micro-batch gradients" in d.message and "applied: g4/4" in d.message
    assert d.code_description is not None and d.code_description.href.endswith("GA101-zero-grad-in-window.md")
    assert d.related_information is not None
    assert {r.location.range.start.line for r in d.related_information} >= {35, 39, 41}
    assert {r.location.uri for r in d.related_information} == {(tmp_path / "train.py").as_uri()}


async def test_dead_code_is_tagged(client: LanguageClient, tmp_path: Path) -> None:
    text = (FIXTURES / "GA203-dead-loss-scaling" / "divides_after_backward.py").read_text("utf-8")
    (d,) = await on_disk(client, tmp_path, text).codes("GA203")
    assert list(d.tags or ()) == [types.DiagnosticTag.Unnecessary]


async def test_edits_change_the_findings(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    document.type((43, 8), (43, 8), "    ")
    await document.codes()
    document.type((43, 8), (43, 12), "")
    await document.codes("GA101")


async def test_a_burst_of_keystrokes_ends_in_the_last_text(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, FIXED)
    await document.codes()
    for number in range(30):
        document.type((0, 0), (0, 0), f"# {number}\n")
    document.replace(BAD)
    (d,) = await document.codes("GA101")
    assert d.range.start.line == 43
    await asyncio.sleep(0.5)
    assert [x.range.start.line for x in client.diagnostics[document.uri]] == [43]


async def test_half_typed_code_keeps_what_was_understood(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    hints = await document.hints()
    document.type((0, 0), (0, 0), "def half(:\n")
    _, kept = await document.codes("GA000", "GA101")
    assert kept.range.start.line == 44
    assert await document.hints() == {row + 1: label for row, label in hints.items()}
    document.type((0, 0), (1, 0), "")
    await document.codes("GA101")


async def test_untitled_text(client: LanguageClient) -> None:
    document = Document(client, "untitled:Untitled-1", BAD)
    await document.codes("GA101")
    titles = [a.title for a in await document.all_actions(WHOLE)]
    assert any("zero_grad" in title for title in titles)
    assert not any("running" in title for title in titles)


async def test_closing_clears(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(document.uri)))
    await document.codes()


async def test_columns_count_utf16_units(client: LanguageClient, tmp_path: Path) -> None:
    text = BAD.replace("        optimizer.zero_grad()", "        '🙂'; optimizer.zero_grad()")
    document = on_disk(client, tmp_path, text)
    (d,) = await document.codes("GA101")
    assert d.range.start.character == 8 + 6
    document.type((43, 8), (43, 14), "")
    while (await document.codes("GA101"))[0].range.start.character != 8:
        await asyncio.sleep(0.02)


# --- actions, hovers, hints --------------------------------------------------------------------------


async def test_the_fix_is_offered_and_right(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    (d,) = await document.codes("GA101")
    found = await document.actions(d.range, types.CodeActionKind.QuickFix.value)
    fix = next(a for a in found if a.is_preferred)
    assert fix.kind == types.CodeActionKind.QuickFix and fix.diagnostics is not None
    assert fix.diagnostics[0].code == "GA101"
    document.replace(applied(BAD, fix.edit))
    await document.codes()


async def test_fix_all(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    (action,) = await document.actions(WHOLE, "source.fixAll")
    assert action.kind == "source.fixAll.galint"
    assert lint(Source("t.py", applied(BAD, action.edit)), Config()).diagnostics == []
    clean = on_disk(client, tmp_path, FIXED, "clean.py")
    await clean.codes()
    assert await clean.actions(WHOLE) == []


async def test_ignoring_a_line(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    (d,) = await document.codes("GA101")
    action = next(a for a in await document.actions(d.range) if a.title.startswith("Ignore"))
    text = applied(BAD, action.edit)
    assert "# galint: ignore[GA101]" in text
    document.replace(text)
    await document.codes()


async def test_actions_elsewhere_are_none(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    top = types.Range(types.Position(0, 0), types.Position(0, 1))
    assert await document.actions(top, types.CodeActionKind.QuickFix.value) == []


async def test_hover(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    finding = await document.hover(44, "zero_grad")
    assert "GA101 zero-grad-in-window" in finding and "## What it does" in finding
    step = await document.hover(42, "step")
    assert "⟵ g₄/4" in step and "large batch: `(g1 + g2 + g3 + g4)/4`" in step
    assert await document.hover(1, "classifier") == ""


async def test_inlay_hints(client: LanguageClient, tmp_path: Path) -> None:
    good = on_disk(client, tmp_path, FIXED)
    rows = {line.strip().split("(")[0]: row for row, line in enumerate(FIXED.splitlines(), 1)}
    assert await good.hints() == {rows["loss.backward"]: "×1/4", rows["optimizer.step"]: "⟵ (g₁+g₂+g₃+g₄)/4"}
    bad = on_disk(client, tmp_path, BAD, "bad.py")
    assert (await bad.hints())[42] == "⟵ g₄/4 ≠ large batch"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
async def test_confirming_by_running(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    (d,) = await document.codes("GA101")
    titles = [a.title for a in await document.all_actions(d.range)]
    assert "Confirm GA101 by running its loop" in titles
    params = types.ExecuteCommandParams("galint.confirm", [document.uri, "GA101", 44])
    said = await client.workspace_execute_command_async(params)
    assert "confirmed by running" in said
    assert "confirmed by running" in client.diagnostics[document.uri][0].message
    document.type((0, 0), (0, 0), "# changed\n")
    await document.codes("GA101")
    while client.diagnostics[document.uri][0].range.start.line != 44:
        await asyncio.sleep(0.02)
    assert "running" not in client.diagnostics[document.uri][0].message
    assert await client.workspace_execute_command_async(params) is None
    assert any("save the file first" in m.message for m in client.messages)


# --- notebooks ---------------------------------------------------------------------------------------


async def test_notebook(client: LanguageClient, tmp_path: Path) -> None:
    uri = (tmp_path / "train.ipynb").as_uri()
    at = BAD.index("def train")
    texts = {f"{uri}#a": BAD[:at], f"{uri}#b": "%matplotlib inline\n", f"{uri}#c": BAD[at:]}
    code, prose = types.NotebookCellKind.Code, types.NotebookCellKind.Markup
    cells = [types.NotebookCell(code, name) for name in texts]
    items = [types.TextDocumentItem(name, "python", 1, text) for name, text in texts.items()]
    book = types.NotebookDocument(uri, "jupyter-notebook", 1, cells)
    client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(book, items))
    document = Document.__new__(Document)
    document.client, document.uri, document.version, document.text = client, f"{uri}#c", 1, texts[f"{uri}#c"]
    (d,) = await document.codes("GA101")
    row = next(n for n, line in enumerate(document.text.splitlines()) if "expect: GA101" in line)
    assert d.range.start.line == row
    fix = next(a for a in await document.actions(d.range) if a.is_preferred)
    assert fix.edit is not None and fix.edit.document_changes is not None
    assert {c.text_document.uri for c in fix.edit.document_changes} == {f"{uri}#c"}  # type: ignore[union-attr]
    assert "⟵ g₄/4 ≠ large batch" in (await document.hints()).values()
    # A new cell in front moves nothing within the cell; deleting the loop's cell clears its finding.
    note = types.NotebookCell(prose, f"{uri}#t")
    version = types.VersionedNotebookDocumentIdentifier(2, uri)
    structure = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(0, 0, [note]), [types.TextDocumentItem(f"{uri}#t", "markdown", 1, "# hi")], None
    )
    change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure=structure))
    client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(version, change))
    edit = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, f"{uri}#c"),
        [types.TextDocumentContentChangePartial(types.Range(types.Position(0, 0), types.Position(0, 0)), "# a\n")],
    )
    change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(text_content=[edit]))
    client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(version, change))
    while (await document.codes("GA101"))[0].range.start.line != row + 1:
        await asyncio.sleep(0.02)
    gone = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(3, 1, []), None, [types.TextDocumentIdentifier(f"{uri}#c")]
    )
    change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure=gone))
    client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(version, change))
    await document.codes()


def opened(client: LanguageClient, path: Path, texts: list[str]) -> Document:
    """A notebook in the editor, its cells named by their index, and the last of them."""
    uri = path.as_uri()
    cells = [types.NotebookCell(types.NotebookCellKind.Code, f"{uri}#{n}") for n in range(len(texts))]
    items = [types.TextDocumentItem(f"{uri}#{n}", "python", 1, text) for n, text in enumerate(texts)]
    book = types.NotebookDocument(uri, "jupyter-notebook", 1, cells)
    client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(book, items))
    document = Document.__new__(Document)
    document.client, document.uri, document.version, document.text = client, items[-1].uri, 1, texts[-1]
    return document


async def test_a_broken_cell_hides_nothing_of_the_others(client: LanguageClient, tmp_path: Path) -> None:
    document = opened(client, tmp_path / "train.ipynb", ["loss = (", BAD])
    await document.codes("GA101")
    assert [d.code for d in client.diagnostics[document.uri.replace("#1", "#0")]] == ["GA000"]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
async def test_a_loop_of_a_notebook_is_confirmed_by_running(client: LanguageClient, tmp_path: Path) -> None:
    path, texts = tmp_path / "train.ipynb", ["rate = 0.1\n\n", BAD]
    cells = [{"cell_type": "code", "source": text, "outputs": []} for text in texts]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}), encoding="utf-8")
    document = opened(client, path, texts)
    (d,) = await document.codes("GA101")
    titles = [a.title for a in await document.all_actions(d.range)]
    assert "Confirm GA101 by running its loop" in titles
    params = types.ExecuteCommandParams("galint.confirm", [document.uri])
    assert "confirmed by running" in await client.workspace_execute_command_async(params)
    (d,) = client.diagnostics[document.uri]
    assert "confirmed by running" in d.message
    path.write_text("{}", encoding="utf-8")
    assert await client.workspace_execute_command_async(params) is None


async def test_a_closed_notebook_has_no_findings(client: LanguageClient, tmp_path: Path) -> None:
    uri = (tmp_path / "train.ipynb").as_uri()
    cell = types.NotebookCell(types.NotebookCellKind.Code, f"{uri}#a")
    book = types.NotebookDocument(uri, "jupyter-notebook", 1, [cell])
    items = [types.TextDocumentItem(f"{uri}#a", "python", 1, BAD)]
    client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(book, items))
    document = Document.__new__(Document)
    document.client, document.uri, document.version, document.text = client, f"{uri}#a", 1, BAD
    await document.codes("GA101")
    titled = types.NotebookDocumentChangeEvent(metadata={"title": "train"})
    version = types.VersionedNotebookDocumentIdentifier(2, uri)
    client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(version, titled))
    await document.codes("GA101")
    closing = types.DidCloseNotebookDocumentParams(
        types.NotebookDocumentIdentifier(uri), [types.TextDocumentIdentifier(f"{uri}#a")]
    )
    client.notebook_document_did_close(closing)
    await document.codes()


# --- configuration -----------------------------------------------------------------------------------


async def test_configuration_file_and_its_reload(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    file = tmp_path / "galint.toml"
    file.write_text('[severity]\nGA101 = "warning"\n')
    event = types.FileEvent(file.as_uri(), types.FileChangeType.Created)
    client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    while (await document.codes("GA101"))[0].severity != types.DiagnosticSeverity.Warning:
        await asyncio.sleep(0.02)
    file.write_text("selct = 1\n")
    client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    await document.codes()
    document.type((0, 0), (0, 0), "# typed\n")
    document.type((0, 0), (1, 0), "")
    await document.all_actions(WHOLE)
    (told,) = [m.message for m in client.messages if "selct" in m.message]  # once, not at every keystroke
    assert "select" in told
    file.write_text('ignore = ["GA4"]\n')
    document.type((0, 0), (0, 0), "# typed\n")  # also seen without a watcher, at the next keystroke
    await document.codes("GA101")


async def test_client_settings(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    client.set_configuration({"galint": {"ignore": ["zero-grad-in-window"], "inlayHints": False}})
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    await document.codes()
    assert await document.hints() == {}
    client.set_configuration({"galint": {"ignore": ["GA9"]}})
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    end = time.monotonic() + WAIT
    while not any("GA9" in m.message for m in client.messages):
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    await document.codes()  # the old settings stay


async def test_a_saved_configuration_is_seen_without_a_watcher(client: LanguageClient, tmp_path: Path) -> None:
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    file = tmp_path / "galint.toml"
    file.write_text('ignore = ["GA101"]\n')
    client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(file.as_uri())))
    await document.codes()


async def test_other_languages_are_left_alone(client: LanguageClient, tmp_path: Path) -> None:
    prose = (tmp_path / "train.md").as_uri()
    item = types.TextDocumentItem(prose, "markdown", 1, BAD)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    document = on_disk(client, tmp_path, BAD)
    await document.codes("GA101")
    assert prose not in client.diagnostics


async def test_excluded_files_are_left_alone(client: LanguageClient, tmp_path: Path) -> None:
    (tmp_path / "galint.toml").write_text('extend-exclude = ["legacy"]\n')
    (tmp_path / "legacy").mkdir()
    document = on_disk(client, tmp_path, BAD, "legacy/train.py")
    await document.codes()
    assert await document.actions(WHOLE) == []


# --- rough clients -----------------------------------------------------------------------------------


def message(**fields: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def raw(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


INITIALIZE = message(id=1, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}})


async def test_malformed_messages_are_survived() -> None:
    pipe = subprocess.PIPE
    process = subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    item = {"uri": "untitled:x.py", "languageId": "python", "version": 1, "text": BAD}
    change = {"textDocument": {"uri": "untitled:x.py", "version": 2}, "contentChanges": [{"bogus": True}]}
    far = {"start": {"line": 10**9, "character": 10**9}, "end": {"line": 0, "character": 0}}
    broken = [
        raw(b"{not json"),
        raw(b"[]"),
        raw(b"\xff\xfe"),
        message(id=2, method="no/such"),
        message(method="textDocument/didOpen", params={"textDocument": 3}),
        message(method="textDocument/didChange", params=change),
        message(method="textDocument/didChange", params={**change, "contentChanges": [{"range": far, "text": ""}]}),
        message(id=3, method="textDocument/hover", params={"textDocument": {"uri": "none"}, "position": far["start"]}),
        message(id=4, method="workspace/executeCommand", params={"command": "galint.confirm"}),
        message(method="textDocument/didClose", params={"textDocument": {"uri": "none"}}),
    ]
    opening = message(method="textDocument/didOpen", params={"textDocument": item})
    asking = message(
        id=9, method="textDocument/hover",
        params={"textDocument": {"uri": "untitled:x.py"}, "position": {"line": 43, "character": 20}},
    )  # fmt: skip
    leaving = message(id=10, method="shutdown") + message(method="exit")
    # Goodbye is said only when the answer has come: what follows `shutdown` may overtake it.
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(INITIALIZE + b"".join(broken) + opening + asking)
    process.stdin.flush()
    out = await asyncio.wait_for(asyncio.to_thread(_until, process, b"GA101 zero-grad-in-window** (error)"), WAIT)
    assert b'"id": 9' in out
    rest, _ = await asyncio.to_thread(process.communicate, leaving, WAIT)
    assert process.returncode == 0
    assert b'"id": 10' in rest


def _until(process: subprocess.Popen[bytes], wanted: bytes) -> bytes:
    out = b""
    assert process.stdout is not None
    while wanted not in out:
        chunk = process.stdout.read1(65536)  # type: ignore[attr-defined]
        assert chunk, "the server left"
        out += chunk
    return out


async def test_a_client_that_cannot_be_asked_pushes_its_settings() -> None:
    pipe = subprocess.PIPE
    process = subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    item = {"uri": "untitled:x.py", "languageId": "python", "version": 1, "text": BAD}
    pushed = {"settings": {"galint": {"severity": {"GA101": "note"}}}}
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(
        INITIALIZE
        + message(method="initialized", params={})
        + message(method="textDocument/didOpen", params={"textDocument": item})
    )
    process.stdin.flush()
    await asyncio.wait_for(asyncio.to_thread(_until, process, b'"severity": 1'), WAIT)
    process.stdin.write(message(method="workspace/didChangeConfiguration", params=pushed))
    process.stdin.flush()
    out = await asyncio.wait_for(asyncio.to_thread(_until, process, b'"severity": 3'), WAIT)
    assert b"GA101" in out
    await asyncio.to_thread(process.communicate, message(id=10, method="shutdown") + message(method="exit"), WAIT)
    assert process.returncode == 0


@pytest.mark.parametrize("after", [b"", INITIALIZE, INITIALIZE + b"Content-Length: 50\r\n\r\n{"])
async def test_a_client_that_dies_leaves_no_server_behind(after: bytes) -> None:
    pipe = subprocess.PIPE
    process = subprocess.Popen([*COMMAND, "--stdio"], stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None and process.stdout is not None
    with process:
        process.stdin.write(after)
        process.stdin.flush()
        process.stdout.close()
        process.stdin.close()
        assert await asyncio.to_thread(process.wait, WAIT) == 1
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


async def test_without_pygls_one_line_says_what_to_install(tmp_path: Path) -> None:
    blocked = (
        "import sys; sys.modules['pygls'] = None; sys.argv = ['galint', 'server']; from galint.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "galint: the language server needs pygls: install `galint[lsp]`\n"
