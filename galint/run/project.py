"""Imports that resolve inside the project root: found, parsed once, and run as modules of the same machine.

Rows of a followed file are shifted by a multiple of `STRIDE`, so that every span names its file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from galint import program as p
from galint.errors import ParseError, SourceError
from galint.run.calls import Calls
from galint.run.frame import Frame, RunOver, UserRaise
from galint.run.machine import FOREIGN
from galint.run.names import FRAMEWORKS
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD, GRADIENT, STEP
from galint.run.scenario import Scenario
from galint.run.site import Site
from galint.run.static import Static
from galint.run.values import Class, Function, Lit, ModuleValue, Opaque, Value
from galint.source import Source, Span

STRIDE = FOREIGN
_MOST_FILES = 24
_MOST_BYTES = 900_000
_WORDS = (
    b"backward", b"zero_grad", b"DistributedDataParallel", b"no_sync", b"BatchNorm", b"clip_grad", b"GradScaler", b"accum",
    b"optim.", b"fully_shard", b"FullyShardedDataParallel", b"ACCUM", b"Accum", b"(Optimizer)", b"(Trainer)",
    b"Optim(", b'reduction="sum"', b"reduction='sum'",
)  # fmt: skip
_BUILDS = re.compile(
    rb"^def (?!\w*(data|loader|sampler|transform|augment|eval|metric|logger|token|vocab))"
    rb"(build_\w+|(create|make|get|load|init|setup)_?\w*(model|net|arch|backbone|module|optim|sched))",
    re.M | re.I,
)
"""A file that builds networks which other files define matters for what it hands on."""

_FOLLOW = re.compile(
    r"arg|config|cfg|option|opt|parse|model|net|build|create|make|init|wrap|setup|prepare|loss|criterion|scale|sched|accum|step|distrib|ddp|"
    r"param|resolve|launch|main|train|forward|encoder|decoder|engine|world|rank",
    re.I,
)
_DATA = re.compile(
    r"data|loader|sampler|batch|reader|corpus|token|vocab|collat|transform|augment|meter|logger|report|metric|eval|timer",
    re.I,
)

_PROTOCOL = {"__init__", "__call__", "__enter__", "__exit__", "__iter__", "__next__"}

Parse = Callable[[str], p.Program]


@dataclass(slots=True)
class Unit:
    """One followed file."""

    path: Path
    program: p.Program
    index: int


@dataclass(slots=True)
class Project:
    """The files that one linted file reaches by imports inside `root`.

    `missing` are imports that were looked for and lead nowhere, with the reason, for `galint explain`. `touched` are
    all paths that were looked at, for the cache.
    """

    root: Path
    main: Path
    parse: Parse
    units: dict[Path, Unit] = field(default_factory=dict)
    order: list[Unit] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    touched: set[Path] = field(default_factory=set)
    spent: int = 0
    _resolved: dict[tuple[str, int, Path], Path | None] = field(default_factory=dict)

    def collect(self, program: p.Program) -> None:
        """Find and parse what `program` imports, breadth first."""
        work: list[tuple[p.Program, Path]] = [(program, self.main)]
        while work:
            current, path = work.pop(0)
            for module, level, names in imports(current):
                for found in self.targets(module, level, names, path):
                    if found == self.main or found in self.units:
                        continue
                    unit = self._load(found)
                    if unit is not None:
                        work.append((unit.program, found))

    def targets(self, module: str, level: int, names: tuple[str, ...], importer: Path) -> list[Path]:
        """The files that an import statement may mean."""
        out: list[Path] = []
        base = self.resolve(module, level, importer)
        if base is not None:
            out.append(base)
        for name in names:
            deeper = self.resolve(f"{module}.{name}" if module else name, level, importer)
            if deeper is not None and deeper not in out:
                out.append(deeper)
        return out

    def resolve(self, module: str, level: int, importer: Path) -> Path | None:
        """The file of a module inside the root, or None."""
        key = (module, level, importer.parent)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(module, level, importer)
        return self._resolved[key]

    def _resolve(self, module: str, level: int, importer: Path) -> Path | None:
        parts = [q for q in module.split(".") if q]
        if not level and parts and parts[0] in FRAMEWORKS:
            return None  # what the frameworks' names mean is documented; their sources are not run
        if level:
            start = importer.parent
            for _ in range(level - 1):
                start = start.parent
            return self._file(start, parts)
        if not parts:
            return None
        folder = importer.parent
        while True:
            found = self._file(folder, parts)
            if found is not None and found != importer:  # `utils/model.py` that imports the package `model`
                return found
            if folder == self.root or self.root not in folder.parents:
                break
            folder = folder.parent
        return self._file(self.root / "src", parts)

    def _file(self, folder: Path, parts: list[str]) -> Path | None:
        path = folder.joinpath(*parts) if parts else folder
        for candidate in (path.with_name(path.name + ".py") if parts else path / "__init__.py", path / "__init__.py"):
            self.touched.add(candidate)
            if candidate.is_file() and self._inside(candidate):
                return candidate
        return None

    def _inside(self, path: Path) -> bool:
        """False for what a symbolic link leads out of the root."""
        try:
            real = path.resolve()
        except (OSError, RuntimeError):
            return False
        root = self.root.resolve()
        return real == root or root in real.parents

    def _load(self, path: Path) -> Unit | None:
        if len(self.units) >= _MOST_FILES or self.spent > _MOST_BYTES:
            self.missing[str(path)] = "too many files are imported"
            return None
        loaded = load(path, self.parse)
        if isinstance(loaded, str):
            self.missing[str(path)] = loaded
            return None
        if loaded is None:
            return None
        program, size = loaded
        self.spent += size
        unit = Unit(path, program, _index(path))
        self.units[path] = unit
        self.order.append(unit)
        return unit


def located(span: Span) -> tuple[Path | None, Span]:
    """The file of a shifted span (None for the linted file) and the span inside it."""
    index, row = divmod(span.row, STRIDE)
    if not index:
        return None, span
    return _PATHS[index], Span(row, span.column, span.end_row - index * STRIDE, span.end_column)


def imports(program: p.Program) -> list[tuple[str, int, tuple[str, ...]]]:
    """Every import of a file, those inside functions included: (module, level, imported names)."""
    out: list[tuple[str, int, tuple[str, ...]]] = []
    stack: list[p.Node] = list(program.body)
    while stack:
        node = stack.pop()
        if isinstance(node, p.Import):
            out += [(name, 0, ()) for name, _ in node.names]
        elif isinstance(node, p.ImportFrom):
            out.append((node.module, node.level, tuple(n for n, _ in node.names if n != "*")))
        elif isinstance(node, (p.Stmt, p.Handler, p.Case)):
            stack.extend(c for c in node.children() if isinstance(c, (p.Stmt, p.Handler, p.Case)))
    return sorted(set(out))


def load(path: Path, parse: Parse) -> tuple[p.Program, int] | str | None:
    """A file's program and size; a reason where it cannot be had; None where it cannot matter."""
    try:
        stat = path.stat()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return _load(path, stat.st_mtime_ns, stat.st_size, parse)


@lru_cache(maxsize=256)
def _load(path: Path, _mtime: int, size: int, parse: Parse) -> tuple[p.Program, int] | str | None:
    if size > 600_000:
        return "the file is too large to follow"
    try:
        data = path.read_bytes()
        re_exports = path.name == "__init__.py" and size < 20_000
        connects = re_exports or (size < 40_000 and _BUILDS.search(data) is not None)
        if not connects and not any(word in data for word in _WORDS):
            return None
        return shifted(parse(Source.from_bytes(data, str(path), path).text), _index(path) * STRIDE), size
    except (OSError, SourceError):
        return "cannot be read"
    except ParseError as error:
        return f"is not valid Python: {error.message}"


_INDICES: dict[Path, int] = {}
_PATHS: dict[int, Path] = {}


def _index(path: Path) -> int:
    """A file's number in this process, from 1: it shifts the rows of the file's spans."""
    if path not in _INDICES:
        _INDICES[path] = len(_INDICES) + 1
        _PATHS[_INDICES[path]] = path
    return _INDICES[path]


def shifted(program: p.Program, offset: int) -> p.Program:
    """The program with all rows moved by `offset`, in place."""
    stack: list[p.Node] = list(program.body)
    while stack:
        node = stack.pop()
        span = node.span
        node.span = Span(span.row + offset, span.column, span.end_row + offset, span.end_column)
        stack.extend(node.children())
    return program


class Linked(Calls):
    """The machine with project imports followed."""

    def __init__(self, static: Static, scenario: Scenario, fuel: int = 60_000, *, project: Project) -> None:
        super().__init__(static, scenario, fuel)
        self.project = project
        self.modules: dict[Path, Frame] = {}
        self._followed: dict[p.FunctionDef, bool] = {}

    def prepare(self, frame: Frame) -> None:
        """Name the linted file's frame."""
        frame.vars["__galint_file__"] = Lit(str(self.project.main))

    def call_function(self, func: Function, args: list[Value], kwargs: dict[str, Value], node: p.Node) -> Value:
        """Follow what can touch gradients, models or settings; data pipelines stay opaque."""
        inner = func.node
        if isinstance(inner, p.FunctionDef) and inner.span.row >= STRIDE and not self._worth(inner):
            call = node if isinstance(node, p.Call) else p.Call(node.span, p.Name(node.span, inner.name), ())
            return self.unknown_call(
                Site(inner.name, args, kwargs, call, func.closure, args[0] if args else None), inner.name
            )
        return super().call_function(func, args, kwargs, node)

    def instantiate(self, cls: Class, args: list[Value], kwargs: dict[str, Value], node: p.Call, frame: Frame) -> Value:
        """Objects of data classes in other files stay opaque."""
        if cls.node.span.row >= STRIDE and not cls.module_like and self._special_base(cls) != "optimizer":
            methods = [
                m.node for m in cls.members.values() if isinstance(m, Function) and isinstance(m.node, p.FunctionDef)
            ]
            if (
                not any(self.static.tags(m) & GRADIENT for m in methods)
                and self._fields(cls) is None
                and _DATA.search(cls.node.name)
            ):
                return Opaque(f"#{self.tick()}", "loader" if "oader" in cls.node.name else "")
        return super().instantiate(cls, args, kwargs, node, frame)

    def _worth(self, node: p.FunctionDef) -> bool:
        known = self._followed.get(node)
        if known is None:
            owner = self.static.method_of.get(node)
            named = bool(_FOLLOW.search(node.name)) or node.name in _PROTOCOL
            known = (
                bool(self.static.tags(node) & GRADIENT)
                or named
                or (owner is not None and bool(_FOLLOW.search(owner.name)))
                or any(
                    (isinstance(n, p.Arg) and n.keyword == "reduction") or (isinstance(n, p.Call) and self._networks(n))
                    for s in node.body
                    for n in self.static.walk(s)
                )
            )
            if owner is not None and _DATA.search(owner.name) and not self.static.tags(node) & GRADIENT:
                known = node.name == "__init__"
            self._followed[node] = known
        return known

    def _networks(self, node: p.Call) -> bool:
        """Whether a call makes a network of the project."""
        return any(map(self.static._is_module, self.static.classes.get(terminal(node.func), ())))

    def imported(self, module: str, level: int, name: str | None, frame: Frame) -> Value:
        """A project's name where the import resolves inside the root, an external one otherwise."""
        home = frame.globals.vars.get("__galint_file__")
        importer = Path(home.value) if isinstance(home, Lit) else self.project.main
        if name is not None:
            deeper = self.project.resolve(f"{module}.{name}" if module else name, level, importer)
            found = self.project.resolve(module, level, importer) if module or level else None
            if found is not None and found in self.project.units:
                value = self._module(found).vars.get(name)
                if value is not None:
                    return value
            if deeper is not None and deeper in self.project.units:
                return ModuleValue(f"{module}.{name}", self._module(deeper))
            return super().imported(module, level, name, frame)
        found = self.project.resolve(module, level, importer)
        if found is not None and found in self.project.units:
            return ModuleValue(module, self._module(found))
        return super().imported(module, level, name, frame)

    def import_star(self, stmt: p.ImportFrom, frame: Frame) -> None:
        """Every public name of a project file."""
        home = frame.globals.vars.get("__galint_file__")
        importer = Path(home.value) if isinstance(home, Lit) else self.project.main
        found = self.project.resolve(stmt.module, stmt.level, importer)
        if found is not None and found in self.project.units:
            for name, value in self._module(found).vars.items():
                if not name.startswith("_"):
                    frame.vars.setdefault(name, value)

    def _module(self, path: Path) -> Frame:
        """A followed file's names; its definitions run at the first import."""
        known = self.modules.get(path)
        if known is not None:
            return known
        frame = Frame(None)
        frame.vars["__galint_file__"] = Lit(str(path))
        frame.vars["__name__"] = Lit(path.stem)
        self.modules[path] = frame
        for stmt in self.project.units[path].program.body:
            trains = self.static.tags(stmt) & {BACKWARD, STEP}
            if isinstance(stmt, p.If) and "__name__" in p.text(stmt.test):
                continue
            if trains and not isinstance(stmt, (p.FunctionDef, p.ClassDef)):
                continue
            if isinstance(stmt, (p.For, p.While)):
                continue
            try:
                self.run_body((stmt,), frame)
            except UserRaise:
                continue
            except RunOver:
                raise
        return frame
