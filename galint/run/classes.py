"""Objects of project classes: what creating one runs, and what its fields are."""

from __future__ import annotations

from galint import program as p
from galint.run.execute import Execute
from galint.run.frame import Frame
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD, STEP
from galint.run.values import Class, External, Function, Instance, Lit, Mapping, Module, Opaque, Value

_WRAPPERS = frozenset({"DistributedDataParallel", "FullyShardedDataParallel", "DataParallel"})

_OPTIMIZERS = ("torch.optim.", "bitsandbytes.optim.", "timm.optim.", "apex.optimizers.", "torch_optimizer.")
"""Packages whose classes are optimizers, also as the bases of a project's own."""


class Classes(Execute):
    """Creating objects."""

    def instantiate(self, cls: Class, args: list[Value], kwargs: dict[str, Value], node: p.Call, frame: Frame) -> Value:
        """Create an object of a project class."""
        if (wrapper := self._wrapper(cls)) is not None and args:
            return self.call_value(wrapper, args, kwargs, node, frame)
        if cls.module_like and not self._trains(cls):
            return self._module_instance(cls, args, kwargs, node)
        if args and self._is_a_bar(cls):
            return args[0]
        base = self._special_base(cls)
        if base == "optimizer":
            modules = frozenset().union(*(self.modules_in(a) for a in [*args, *kwargs.values()]))
            if not self._member(cls, "step"):
                return self.make_optimizer(f"#{self.tick()}", modules, known=True)
            optimizer = self.make_optimizer(f"#{self.tick()}", modules, known=True)
            optimizer.made = node.span
            return optimizer
        if base == "dataset":
            made = Opaque(f"#{self.tick()}", "loader" if "Loader" in cls.node.name else "")
            made.length = None
            return made
        instance = Instance(cls, f"#{self.tick()}")
        if cls.module_like:
            instance.modules = frozenset({self.new_ident()})
        fields = self._fields(cls)
        if fields is not None:
            self._fill(instance, fields, args, kwargs)
            return instance
        init = self.class_member(cls, "__init__")
        if isinstance(init, Function):
            self.call_function(init, [instance, *args], kwargs, node)
        else:
            for name, value in kwargs.items():
                instance.attrs[name] = value
        return instance

    def _is_a_bar(self, cls: Class) -> bool:
        """True for a project's own progress bar, which gives what it was made around."""
        named = any("tqdm" in p.text(b.value) for b in cls.node.bases)
        named = named or any(isinstance(b, External) and b.name.endswith("tqdm") for b in cls.bases)
        return named and not self._member(cls, "__iter__")

    def _wrapper(self, cls: Class) -> External | None:
        """The wrapper for distributed training that a class derives from, to change what it hands on."""
        for base in cls.bases:
            found = base if isinstance(base, External) else self._wrapper(base) if isinstance(base, Class) else None
            if found is not None and found.name.rpartition(".")[2] in _WRAPPERS:
                return found
        return None

    def _member(self, cls: Class, name: str) -> bool:
        return name in cls.members

    def _trains(self, cls: Class) -> bool:
        """True when a class's methods reach gradient operations, so that its objects must be run."""
        tags: frozenset[str] = frozenset()
        seen: set[int] = set()
        work: list[Class] = [cls]
        while work:
            top = work.pop()
            if id(top) in seen:
                continue
            seen.add(id(top))
            for member in top.members.values():
                if (
                    isinstance(member, Function)
                    and isinstance(member.node, p.FunctionDef)
                    and member.node.name != "forward"
                ):
                    tags |= self.static.tags(member.node)
            work += [b for b in top.bases if isinstance(b, Class)]
        return bool(tags & {BACKWARD, STEP})

    def _module_instance(self, cls: Class, args: list[Value], kwargs: dict[str, Value], node: p.Call) -> Module:
        module = self.make_module(f"#{self.tick()}")
        module.cls = cls.node
        module.items["__class__"] = cls
        module.made = node.span
        for value in [*args, *kwargs.values()]:
            if isinstance(value, Module):
                self.ancestors[value.ident] = self.ancestors[value.ident] | {module.ident}
                module.modules |= value.modules
        module.items["__settings__"] = Lit(None, frozenset(k for v in [*args, *kwargs.values()] for k in self._keys(v)))
        names = [q.name for q in self._init_params(cls)][1:]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        module.items["__given__"] = Mapping(dict(given))
        for name, value in given.items():
            if isinstance(value, Module):
                module.attrs.setdefault(name, value)
        return module

    @staticmethod
    def _keys(value: Value) -> frozenset[str]:
        """The settings in one plain number; of a number that is none, its digits."""
        if isinstance(value, Lit):
            return value.keys or frozenset({str(value.value)} if type(value.value) is int else ())
        return frozenset({value.path}) if type(value) is Opaque and not value.kind else frozenset()

    def _init_params(self, cls: Class) -> tuple[p.Param, ...]:
        init = self.class_member(cls, "__init__")
        return init.node.params if isinstance(init, Function) else ()

    def _special_base(self, cls: Class) -> str:
        for base in cls.bases:
            name = base.name if isinstance(base, External) else base.node.name if isinstance(base, Class) else ""
            last = name.split(".")[-1]
            if last == "Optimizer" or (
                name.startswith(_OPTIMIZERS) and last[:1].isupper() and "lr_scheduler" not in name
            ):
                return "optimizer"
            if last in {"Dataset", "IterableDataset", "DataLoader", "Sampler", "BatchSampler", "TensorDataset"}:
                return "dataset"
            if isinstance(base, Class):
                found = self._special_base(base)
                if found:
                    return found
        return ""

    def _fields(self, cls: Class) -> list[tuple[str, Value | None]] | None:
        """The fields of a dataclass or named tuple, in order; None for other classes."""
        decorated = any(terminal(d) in {"dataclass", "define", "frozen", "attrs", "s"} for d in cls.node.decorators)
        tuple_like = any(
            isinstance(b, External) and b.name.split(".")[-1] in {"NamedTuple", "BaseModel", "TypedDict"}
            for b in cls.bases
        )
        inherited = [b for b in cls.bases if isinstance(b, Class)]
        below = [f for b in inherited for f in (self._fields(b) or [])]
        if not (decorated or tuple_like or below):
            return None
        out = list(below)
        for stmt in cls.node.body:
            if isinstance(stmt, p.AnnAssign) and isinstance(stmt.target, p.Name):
                name = stmt.target.id
                out = [f for f in out if f[0] != name]
                out.append((name, cls.members.get(name) if stmt.value is not None else None))
        return out

    def _fill(
        self, instance: Instance, fields: list[tuple[str, Value | None]], args: list[Value], kwargs: dict[str, Value]
    ) -> None:
        given = dict(zip([name for name, _ in fields], args, strict=False)) | kwargs
        cls = instance.cls.node.name
        for name, default in fields:
            if name in given:
                instance.attrs[name] = given[name]
            elif isinstance(default, Lit):
                path = f"{cls}.{name}"
                instance.attrs[name] = Lit(default.value, frozenset({path}), text=path)
            elif default is None:
                instance.attrs[name] = self.make_opaque(f"{cls}.{name}", name)
            elif isinstance(default, Opaque) and default.path.startswith("field("):
                instance.attrs[name] = default
            else:
                instance.attrs[name] = default
        init = self.class_member(instance.cls, "__post_init__")
        if isinstance(init, Function):
            self.call_function(init, [instance], {}, instance.cls.node)
