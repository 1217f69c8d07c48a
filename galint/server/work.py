"""The analyses of open documents: debounced, one at a time, outdated ones dropped, the last understood one kept."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from galint.discovery import forced_out, project_root
from galint.driver import internal_error
from galint.errors import ConfigError, SourceError
from galint.server import confirm, convert
from galint.server.documents import Desk, Page, path_of
from galint.server.study import Study, add_fixes, carried, study
from galint.syntax.incremental import Incremental

if TYPE_CHECKING:
    from galint.config import Config
    from galint.server.app import Server


_STACK = 16 * 1024 * 1024
"""Bytes of the worker's stack: compiled code descends on it, and some systems give threads half a MiB only."""


@dataclass(slots=True)
class _State:
    """One document's analyses. `serial` counts its texts; `shown` is of the text `done`."""

    serial: int = 0
    done: int = -1
    task: asyncio.Task[None] | None = None
    shown: Study | None = None
    understood: Study | None = None
    """The last study of valid Python."""
    parser: Incremental = field(default_factory=Incremental)
    """Used in the worker only."""
    typed: float = 0.0
    """When the text changed last (`time.monotonic`)."""
    fixing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Work:
    """Schedules analyses in a worker thread and publishes what they find."""

    def __init__(self, server: Server) -> None:
        self.server = server
        threading.stack_size(_STACK)
        self.pool = ThreadPoolExecutor(1, "galint")
        self.states: dict[str, _State] = {}
        self.complaint = ""
        """The mistake in a configuration file that the user was told last."""

    def soon(self, desk: Desk, delay: float | None = None) -> None:
        """Analyse a document once its client is quiet for a moment; an analysis of an older text is dropped."""
        state = self.states.setdefault(desk.uri, _State())
        state.serial += 1
        if state.task is not None:
            state.task.cancel()
        wait = delay
        if wait is None:
            # The first keystroke after a pause is analysed at once, those of a burst when it ends.
            quiet = time.monotonic() - state.typed
            wait = self.server.settings.debounce if quiet < self.server.settings.debounce else 0.0
        state.typed = time.monotonic()
        state.task = asyncio.get_running_loop().create_task(self._later(desk, state, wait))

    def refresh(self) -> None:
        """Analyse every open document anew (the configuration changed)."""
        for desk in list(self.server.desks.values()):
            self.soon(desk, delay=0)

    def close(self, desk: Desk) -> None:
        """Forget a document and clear its findings in the client."""
        state = self.states.pop(desk.uri, None)
        if state is not None and state.task is not None:
            state.task.cancel()
        self.clear(part.uri for part in desk.parts)

    def clear(self, uris: Iterable[str]) -> None:
        """Take back the findings of documents or cells."""
        for uri in uris:
            self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    async def current(self, desk: Desk) -> Study | None:
        """The study of the text as it is now, waited for."""
        state = self.states.get(desk.uri)
        while state is not None and state.done != state.serial and state.task is not None:
            task = state.task
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
            if task is state.task:
                break
        return state.shown if state is not None else None

    async def with_fixes(self, desk: Desk) -> Study | None:
        """The current study, its findings with their proved fixes."""
        found = await self.current(desk)
        state = self.states.get(desk.uri)
        if found is None or state is None:
            return None
        async with state.fixing:
            if not found.fixed:
                try:
                    await asyncio.get_running_loop().run_in_executor(self.pool, add_fixes, found)
                except Exception as error:  # a fault in a fix must not take the other actions away
                    found.fixed = True
                    self.server.log(internal_error(desk.filename, error), types.MessageType.Error)
        return found

    async def _later(self, desk: Desk, state: _State, wait: float) -> None:
        if wait:
            await asyncio.sleep(wait)
        serial, page = state.serial, desk.page()
        setting = self._setting(desk)
        if setting is None:
            state.shown = state.understood = None
            state.done = serial
            self.clear(uri for uri, _, _ in page.parts)
            return
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self.pool, self._analyse, state, serial, page, setting)
        except Exception as error:
            self.server.log(internal_error(desk.filename, error), types.MessageType.Error)
            state.done = serial
            return
        if found is None or serial != state.serial:
            return
        if found.broken and state.understood is not None:
            # Half-typed code: what was understood stays, moved with the text, below the syntax error.
            kept = carried(state.understood, page)
            told = {(d.code, d.span) for d in found.report.diagnostics}  # of a notebook's other cells
            older = [d for d in kept.report.diagnostics if (d.code, d.span) not in told]
            kept.report.diagnostics = [*found.report.diagnostics, *older]
            found = kept
        elif not found.broken:
            if state.understood is not None and state.understood.page.source.text == page.source.text:
                found.confirmed = state.understood.confirmed
            state.understood = found
        state.shown, state.done = found, serial
        self._publish(found)
        if self.server.can("workspace", "inlay_hint", "refresh_support") and self.server.settings.inlay_hints:
            with contextlib.suppress(Exception):
                self.server.workspace_inlay_hint_refresh(None)

    @staticmethod
    def _analyse(state: _State, serial: int, page: Page, setting: tuple[Config, Path | None]) -> Study | None:
        """In the worker: None when a newer text came while this one waited for its turn."""
        if serial != state.serial:
            return None
        return study(page, *setting, state.parser.parse)

    def _setting(self, desk: Desk) -> tuple[Config, Path | None] | None:
        """A document's configuration and project; None when it is excluded or its configuration is wrong."""
        folders = [p for f in self.server.workspace.folders.values() if (p := path_of(f.uri)) is not None]
        folder = desk.path.parent if desk.path is not None else folders[0] if folders else Path.cwd()
        try:
            config = self.server.configs.of(folder)
        except ConfigError as error:
            if str(error) != self.complaint:  # once, not at every keystroke
                self.complaint = str(error)
                self.server.tell(self.complaint)
            return None
        self.complaint = ""
        if desk.path is None:
            return config, None
        if forced_out(desk.path, False, config, folder):
            return None
        return config, project_root(folder, None)

    def _publish(self, found: Study) -> None:
        for uri, diagnostics in convert.diagnostics(found, self.server.encoding).items():
            self.server.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri, diagnostics, found.page.version(uri))
            )

    # --- confirming --------------------------------------------------------------------------------

    def can_run(self) -> bool:
        """Whether scripts can be run here."""
        return confirm.can_run(self.server.settings.interpreter)

    async def confirm(self, desk: Desk, code: str | None = None, row: int | None = None) -> str | None:
        """Run the loops of a document's findings and add what was measured to its findings.

        Returns the sentence shown to the user: about the finding of `code` at `row`, or about all without one.
        """
        found = await self.current(desk)
        if found is None or found.page.path is None:
            return None
        try:
            if confirm.saved(found.page) != found.page.source.text:
                raise confirm.NotConfirmed("save the file first: what runs is the file on disk")
            settings = self.server.settings
            verdicts = await confirm.measure(found.page.path, settings.interpreter, settings.confirm_timeout)
        except (confirm.NotConfirmed, SourceError, OSError) as error:
            self.server.tell(str(error), types.MessageType.Warning)
            return None
        measured = confirm.joined(found, verdicts)
        for index, text in measured.items():
            d = found.report.diagnostics[index]
            found.confirmed[d.code, d.span] = text
        asked = []
        for index, text in measured.items():
            d = found.report.diagnostics[index]
            if code is None or (d.code, d.span.row) == (code, row):
                asked.append(f"{d.code} {text}")
        said = "; ".join(asked) or f"the run measured nothing about {code or 'these findings'}"
        self.server.tell(said, types.MessageType.Info)
        state = self.states.get(desk.uri)
        if state is not None and state.shown is found:
            self._publish(found)
        return said
