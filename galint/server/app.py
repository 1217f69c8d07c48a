"""The server's protocol handlers: documents come in, findings, actions, hovers and hints go out."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from galint import __version__
from galint.errors import ConfigError
from galint.server import actions, hints
from galint.server.documents import Desk, Encoding, Part, changed, path_of, to_column
from galint.server.settings import Configs, Settings, read
from galint.server.work import Work

_CODE = types.NotebookCellKind.Code


class Server(LanguageServer):
    """galint's language server; one for each client."""

    def __init__(self) -> None:
        super().__init__(
            "galint",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=types.NotebookDocumentSyncOptions(
                notebook_selector=[
                    types.NotebookDocumentFilterWithCells(cells=[types.NotebookCellLanguage(language="python")])
                ],
                save=True,
            ),
        )
        self.settings = Settings()
        self.configs = Configs(self.settings)
        self.desks: dict[str, Desk] = {}
        self.work = Work(self)
        self.said_goodbye = False
        """The client asked to shut down, as the protocol wants it."""

    @property
    def encoding(self) -> Encoding:
        """What the client counts columns in."""
        return self.workspace.position_encoding or types.PositionEncodingKind.Utf16

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A message that cannot be read goes to the log, not into the user's face."""
        self.log(f"{type(error).__name__}: {error}")

    def log(self, text: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """One line in the client's log; silent when the client is gone."""
        with contextlib.suppress(Exception):
            self.window_log_message(types.LogMessageParams(kind, f"galint: {text}"))

    def tell(self, text: str, kind: types.MessageType = types.MessageType.Error) -> None:
        """One line shown to the user."""
        with contextlib.suppress(Exception):
            self.window_show_message(types.ShowMessageParams(kind, f"galint: {text}"))

    def use(self, value: object) -> None:
        """Take the client's settings; a mistake in them is shown and the old ones stay."""
        try:
            self.settings = read(value)
            self.configs = Configs(self.settings)
        except ConfigError as error:
            self.tell(str(error))

    def desk_of(self, uri: str) -> Desk | None:
        """The open file or notebook that a document or cell belongs to."""
        return self.desks.get(uri) or next((d for d in self.desks.values() if d.part(uri) is not None), None)

    def can(self, *path: str) -> bool:
        """Whether the client has a capability, named by its attributes."""
        value: object = self.client_capabilities
        for name in path:
            value = getattr(value, name, None)
        return bool(value)


def build() -> Server:
    """A server with all its handlers."""
    server = Server()
    _lifecycle(server)
    _documents(server)
    _notebooks(server)
    _requests(server)
    return server


def _lifecycle(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(ls: Server, params: types.InitializeParams) -> None:
        ls.use(params.initialization_options)

    @server.feature(types.INITIALIZED)
    async def initialized(ls: Server, params: types.InitializedParams) -> None:
        if ls.can("workspace", "did_change_watched_files", "dynamic_registration"):
            watchers = [types.FileSystemWatcher(f"**/{name}") for name in ("galint.toml", "pyproject.toml")]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            watch = types.Registration("galint-watch", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            with contextlib.suppress(JsonRpcException):
                await ls.client_register_capability_async(types.RegistrationParams([watch]))
        await _ask_settings(ls)

    @server.feature(types.SHUTDOWN)
    def shutdown(ls: Server, params: None) -> None:
        ls.said_goodbye = True

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration(ls: Server, params: types.DidChangeConfigurationParams) -> None:
        if not await _ask_settings(ls) and params.settings is not None:
            ls.use(params.settings)
            ls.work.refresh()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
        ls.configs.reset()
        ls.work.refresh()


async def _ask_settings(ls: Server) -> bool:
    """Fetch the client's `galint` section, if it can be asked, and analyse anew when it says something."""
    if not ls.can("workspace", "configuration"):
        return False
    try:
        items = [types.ConfigurationItem(section="galint")]
        (value,) = await ls.workspace_configuration_async(types.ConfigurationParams(items))
    except (JsonRpcException, ValueError, TypeError):
        return False
    if value is not None:
        ls.use(value)
        ls.work.refresh()
    return True


def _documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        if ls.desk_of(item.uri) is not None and ls.desk_of(item.uri) is not ls.desks.get(item.uri):
            return  # a cell of a notebook that is already open
        path = path_of(item.uri)
        if item.language_id not in ("", "python") and (path is None or path.suffix not in (".py", ".pyi")):
            return
        desk = Desk(item.uri, path, _name(ls, item.uri), [Part(item.uri, item.text, item.version)])
        ls.desks[item.uri] = desk
        ls.work.soon(desk, delay=0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def edited(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
        desk = ls.desk_of(params.text_document.uri)
        if desk is not None:
            _edit(ls, desk, params.text_document.uri, params.content_changes, params.text_document.version)
            ls.work.soon(desk)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
        if params.text_document.uri.rpartition("/")[2] in ("galint.toml", "pyproject.toml"):
            ls.configs.reset()
            ls.work.refresh()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
        desk = ls.desks.pop(params.text_document.uri, None)
        if desk is not None:
            ls.work.close(desk)


def _notebooks(server: Server) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def opened(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
        book = params.notebook_document
        texts = {item.uri: Part(item.uri, item.text, item.version) for item in params.cell_text_documents}
        cells = [c.document for c in book.cells if c.kind == _CODE]
        parts = [texts[uri] for uri in cells if uri in texts]
        desk = Desk(book.uri, path_of(book.uri), _name(ls, book.uri), parts, is_notebook=True)
        ls.desks[book.uri] = desk
        ls.work.soon(desk, delay=0)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def edited(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
        desk = ls.desks.get(params.notebook_document.uri)
        cells = params.change.cells
        if desk is None or cells is None:
            return
        structure = cells.structure
        if structure is not None:
            gone = {item.uri for item in structure.did_close or ()}
            known = {p.uri: p for p in desk.parts if p.uri not in gone}
            known.update({i.uri: Part(i.uri, i.text, i.version) for i in structure.did_open or ()})
            book = ls.workspace.get_notebook_document(notebook_uri=desk.uri)
            order = [c.document for c in book.cells if c.kind == _CODE] if book is not None else list(known)
            desk.parts = [known[uri] for uri in order if uri in known]
            ls.work.clear(gone)
        for text in cells.text_content or ():
            _edit(ls, desk, text.document.uri, text.changes, text.document.version)
        ls.work.soon(desk)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def closed(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
        desk = ls.desks.pop(params.notebook_document.uri, None)
        if desk is not None:
            ls.work.close(desk)


def _edit(
    ls: Server, desk: Desk, uri: str, changes: Sequence[types.TextDocumentContentChangeEvent], version: int | None
) -> None:
    part = desk.part(uri)
    if part is None:
        return
    for change in changes:
        part.text = changed(part.text, change, ls.encoding)
    part.version = version


def _name(ls: Server, uri: str) -> str:
    """How messages name a document: relative to the workspace where it lies in it."""
    path = path_of(uri)
    if path is None:
        return uri.rpartition("/")[2] or uri
    for folder in ls.workspace.folders.values():
        root = path_of(folder.uri)
        if root is not None and path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return path.as_posix()


def _requests(server: Server) -> None:
    kinds = [types.CodeActionKind.QuickFix, actions.FIX_ALL]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    async def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        desk = ls.desk_of(params.text_document.uri)
        study = await ls.work.with_fixes(desk) if desk is not None else None
        if study is None:
            return None
        uri = params.text_document.uri
        first = study.page.row_of(uri, params.range.start.line + 1)
        last = study.page.row_of(uri, params.range.end.line + 1)
        if first is None or last is None:
            return None
        only = [str(getattr(kind, "value", kind)) for kind in params.context.only] if params.context.only else None
        return actions.actions(
            study, uri, (first, last), only, ls.encoding,
            versioned=ls.can("workspace", "workspace_edit", "document_changes"),
            can_run=ls.work.can_run(),
        )  # fmt: skip

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        desk = ls.desk_of(uri)
        study = await ls.work.current(desk) if desk is not None else None
        row = study.page.row_of(uri, params.position.line + 1) if study is not None else None
        if study is None or row is None:
            return None
        lines = study.page.lines.get(uri, [])
        line = lines[params.position.line] if params.position.line < len(lines) else ""
        return hints.hover(study, row, to_column(line, params.position.character, ls.encoding), ls.encoding)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay(ls: Server, params: types.InlayHintParams) -> list[types.InlayHint] | None:
        uri = params.text_document.uri
        desk = ls.desk_of(uri)
        if desk is None or not ls.settings.inlay_hints:
            return None
        study = await ls.work.current(desk)
        return hints.inlay(study, uri, params.range, ls.encoding) if study is not None else None

    @server.command(actions.CONFIRM)
    async def confirm(ls: Server, *arguments: Any) -> str | None:
        """Run the loop of a finding and add what was measured to its diagnostics."""
        given = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else list(arguments)
        desk = ls.desk_of(str(given[0])) if given else None
        code = given[1] if len(given) > 1 and isinstance(given[1], str) else None
        row = given[2] if len(given) > 2 and isinstance(given[2], int) else None
        return await ls.work.confirm(desk, code, row) if desk is not None else None
