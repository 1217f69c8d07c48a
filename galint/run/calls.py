"""Calls of the abstract run: project functions and classes are followed, others mean what semantics say."""

from __future__ import annotations

import re
from typing import Any

from galint import program as p
from galint.ledger import ONE, Coefficient
from galint.run.execute import Execute
from galint.run.frame import Frame, UserRaise
from galint.run.iterate import length_of
from galint.run.site import Site
from galint.run.static import BACKWARD, GRADIENT, STEP, path_terminal, terminal
from galint.run.values import (
    NONE,
    Bound,
    Class,
    Context,
    External,
    Function,
    GeneratorCall,
    Instance,
    Iterable,
    Iterator,
    Lit,
    Mapping,
    Module,
    ModuleValue,
    Opaque,
    Optimizer,
    Partial,
    Range,
    Seq,
    Super,
    Tensor,
    Value,
)
from galint.semantics import contexts, function_meaning, method_meaning
from galint.source import Span

_DEPTH = 40
_APPLIES = re.compile(r"step|update|apply|optimi|minimi|accum", re.I)
_WRAPS = re.compile(r"every|iter|progress|track|wrap|bar|log|prefetch|tqdm|enumerat|loop|watch|monitor|time", re.I)
_STEPS = re.compile(r"^(optimize|optimizer_step|optim_step|step_optimizer|step|take_step|apply_gradients)$")
_FETCH = re.compile(r"next|get|fetch|sample|batch|draw|pop|read|load|data|generate", re.I)
_BENIGN = re.compile(
    r"load|save|state|sched|print|init|log|resume|checkpoint|ckpt|prepare|lr|len|isinstance|type|hasattr|ema", re.I
)
_UPDATE_EFFECT = re.compile(r"update|step$|ema|.*_ema$")
_AVERAGE = re.compile(
    r"(^|_)(ema|swa)(_|$)|^(model)?ema|ema(model)?$|average[rd]?_?(model|weights)|(model|weight)s?_?averag", re.I
)
_UPDATES = frozenset({"update", "step", "update_parameters", "update_ema", "ema_update", "update_average"})


class Calls(Execute):
    """The complete machine."""

    def backward(self, tensor: Tensor, span: Span, factor: Coefficient = ONE, name: str = "") -> None:
        """Accumulate, then run what post-accumulate hooks do with each parameter."""
        super().backward(tensor, span, factor, name)
        hooks, self.grad_hooks = self.grad_hooks, []  # a hook of a hook is not run
        for func, parameter, site in hooks:
            self.call_value(func, [parameter], {}, site.node, site.frame)
        self.grad_hooks = hooks

    def call(self, node: p.Call, frame: Frame) -> Value:
        """Evaluate a call expression."""
        self.burn()
        func = node.func
        if isinstance(func, p.Name) and func.id == "super" and not frame.find("super"):
            return self._super(frame)
        receiver: Value | None = None
        callee: Value
        if _UPDATE_EFFECT.match(terminal(func)) and self.loops and is_update_effect(func):
            self.event("update_effect", node.span, p.text(func))
        if isinstance(func, p.Attr):
            receiver = self.eval(func.value, frame)
            if isinstance(receiver, Lit) and receiver.value is None:
                # None here means that the run took a branch the program does not take.
                receiver = self.make_opaque(p.text(func.value), terminal(func.value))
                if isinstance(func.value, p.Name):
                    self.bind(func.value, receiver, frame)
            callee = self._method(receiver, func.name, func)
        else:
            callee = self.eval(func, frame)
        args: list[Value] = []
        kwargs: dict[str, Value] = {}
        star = False
        for arg in node.args:
            value = self.eval(arg.value, frame)
            if arg.star == "*":
                if isinstance(value, Seq):
                    args += value.elts
                else:
                    args.append(value)
                    star = True
            elif arg.star == "**":
                if isinstance(value, Mapping):
                    kwargs.update({str(k): v for k, v in value.items.items()})
                else:
                    kwargs["**"] = value
                    star = True
            elif arg.keyword:
                kwargs[arg.keyword] = value
            else:
                args.append(value)
        return self.call_value(callee, args, kwargs, node, frame, star=star)

    def _method(self, receiver: Value, name: str, func: p.Attr) -> Value:
        if isinstance(receiver, External):
            return External(f"{receiver.name}.{name}")
        if isinstance(receiver, Instance | Class | Super | ModuleValue):
            return self.get_attr(receiver, name, func)
        if isinstance(receiver, Module):
            found = self.get_attr(receiver, name, func) if name not in receiver.attrs else receiver.attrs[name]
            if isinstance(found, Bound) and found.func is not None:
                return found
            if isinstance(found, Module) and name in receiver.attrs and found.made is not None:
                return found
            return Bound(receiver, name)
        if isinstance(receiver, Opaque) and name in receiver.attrs:
            found = receiver.attrs[name]
            if isinstance(found, Function | Module | Bound | Partial | Class | Instance):
                return found
        return Bound(receiver, name)

    def _super(self, frame: Frame) -> Value:
        holder: Frame | None = frame
        while holder is not None and holder.receiver is None:
            holder = holder.parent
        if holder is None or holder.receiver is None or not isinstance(holder.owner, Class):
            return Opaque("super()")
        return Super(holder.owner, holder.receiver)

    def call_value(
        self,
        callee: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        node: p.Call,
        frame: Frame,
        *,
        star: bool = False,
    ) -> Value:
        """Call a value with evaluated arguments."""
        if isinstance(callee, Function):
            return self.call_function(callee, args, kwargs, node)
        if isinstance(callee, Partial):
            merged = {**callee.kwargs, **kwargs}
            return self.call_value(callee.func, callee.args + args, merged, node, frame, star=star)
        if isinstance(callee, Class):
            return self.instantiate(callee, args, kwargs, node, frame)
        if isinstance(callee, Bound) and callee.func is not None:
            receiver = callee.receiver
            decorators = {terminal(d) for d in getattr(callee.func.node, "decorators", ())}
            if isinstance(receiver, Module) and callee.name == "forward":
                return self._named(Site("forward", args, kwargs, node, frame, receiver, star), "module")
            if "classmethod" in decorators and callee.func.owner is not None:
                receiver = callee.func.owner
            return self.call_function(callee.func, [receiver, *args], kwargs, node)
        if isinstance(callee, External):
            site = Site(callee.name, args, kwargs, node, frame, None, star)
            meaning = function_meaning(callee.name)
            if meaning is not None:
                result = meaning(self, site)
                if result is not None:
                    return result
            return self.unknown_call(site, callee.name)
        if isinstance(callee, Bound):
            return self._named(
                Site(callee.name, args, kwargs, node, frame, callee.receiver, star), kind_of(callee.receiver)
            )
        if isinstance(callee, Module):
            return self._named(Site("forward", args, kwargs, node, frame, callee, star), "module")
        if isinstance(callee, Instance):
            found = self.class_member(callee.cls, "__call__")
            if isinstance(found, Function):
                return self.call_function(found, [callee, *args], kwargs, node)
            if callee.cls.module_like:
                return self._named(Site("forward", args, kwargs, node, frame, callee, star), "module")
        if isinstance(callee, Opaque):
            site = Site("()", args, kwargs, node, frame, callee, star)
            return self._named(site, callee.kind or "opaque")
        return self.unknown_call(Site("()", args, kwargs, node, frame, callee, star), p.text(node.func))

    def _named(self, site: Site, kind: str) -> Value:
        meaning = method_meaning(kind, site.name)
        if meaning is not None:
            result = meaning(self, site)
            if result is not None:
                return result
        if kind == "optimizer" and _APPLIES.search(site.name):
            self.result.facts["manual_grad"] = True  # an own method of the optimizer may apply or clear gradients
        base = site.receiver.path if isinstance(site.receiver, Opaque | Tensor) else p.text(site.node.func)
        name = base if site.name == "()" else f"{base}.{site.name}"
        return self.unknown_call(site, name)

    # --- project functions ---------------------------------------------------------------------

    def new_frame(self, func: Function, args: list[Value], kwargs: dict[str, Value]) -> Frame:
        """A frame with the parameters bound."""
        frame = Frame(func.closure, func.node)
        frame.owner = func.owner
        if func.owner is not None and args:
            frame.receiver = args[0]
        positional = [q for q in func.node.params if q.kind == "arg"]
        decorators = {terminal(d) for d in getattr(func.node, "decorators", ())}
        if "staticmethod" in decorators and func.owner is not None:
            frame.receiver = None
        for param, value in zip(positional, args, strict=False):
            frame.vars[param.name] = self._as_param(param.name, value)
        rest = args[len(positional) :]
        used: set[str] = set()
        for param in func.node.params:
            if param.kind == "vararg":
                frame.vars[param.name] = Seq(list(rest), "tuple")
            elif param.kind == "kwarg":
                names = {q.name for q in func.node.params}
                frame.vars[param.name] = Mapping({k: v for k, v in kwargs.items() if k not in names}, param.name)
            elif param.name in kwargs:
                used.add(param.name)
                frame.vars[param.name] = self._as_param(param.name, kwargs[param.name])
            elif param.name not in frame.vars:
                default = func.defaults.get(param.name)
                if default is not None:
                    frame.vars[param.name] = self._default(param.name, default)
                else:
                    frame.vars[param.name] = self.make_opaque(param.name, param.name)
        return frame

    def _default(self, name: str, default: Value) -> Value:
        if isinstance(default, Lit) and default.is_number and not isinstance(default.value, bool):
            return self.soft(Lit(default.value, default.keys | {name}, text=name))
        return default

    def _as_param(self, name: str, value: Value) -> Value:
        if type(value) is Opaque and not value.kind and not value.data and value.deferred is None and value.role == "":
            return self._retype(name, value.path, value)
        return value

    def call_function(self, func: Function, args: list[Value], kwargs: dict[str, Value], node: p.Node) -> Value:
        """Run a project function; recursion and depth are bounded."""
        if isinstance(func.node, p.Lambda):
            self.burn()
            if len(self.call_stack) > _DEPTH:
                return Opaque(f"#{self.tick()}")
            self.call_stack.append(func.node)
            try:
                return self.eval(func.node.body, self.new_frame(func, args, kwargs))
            finally:
                self.call_stack.pop()
        if func.node.is_generator:
            decorators = {terminal(d) for d in func.node.decorators}
            if decorators & {"contextmanager", "asynccontextmanager"}:
                return Context("generator", None, node.span, {"call": GeneratorCall(func, args, kwargs)})
            return GeneratorCall(func, args, kwargs)
        if len(self.call_stack) > _DEPTH or self.call_stack.count(func.node) > 1:
            return self.unknown_call(Site(func.name, args, kwargs, _as_call(node, func), func.closure), func.name)
        frame = self.new_frame(func, args, kwargs)
        self.result.executed.add(id(func.node))
        self.call_stack.append(func.node)
        self.call_spans.append(node.span)
        old_file = self.file
        pushed = self._decorator_contexts(func)
        try:
            self.enter_file(func)
            signal = self.run_body(func.node.body, frame)
        finally:
            self.file = old_file
            for _ in range(pushed):
                self.contexts.pop()
            self.call_stack.pop()
            self.call_spans.pop()
        if signal is not None and signal.kind == "return" and signal.value is not None:
            return signal.value
        return NONE

    def _decorator_contexts(self, func: Function) -> int:
        names = {terminal(d) for d in getattr(func.node, "decorators", ())}
        if names & {"no_grad", "inference_mode"}:
            self.contexts.append(Context("no_grad", None, func.node.span))
            return 1
        return 0

    def enter_file(self, func: Function) -> None:
        """Note which project file a function lives in, for the places of events."""
        home = func.closure.globals.vars.get("__galint_file__")
        if isinstance(home, Lit):
            self.file = home.value

    # --- classes -------------------------------------------------------------------------------

    def instantiate(self, cls: Class, args: list[Value], kwargs: dict[str, Value], node: p.Call, frame: Frame) -> Value:
        """Create an object of a project class."""
        if cls.module_like and not self._trains(cls):
            return self._module_instance(cls, args, kwargs, node)
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
        names = [q.name for q in self._init_params(cls)][1:]
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            if isinstance(value, Module):
                module.attrs.setdefault(name, value)
        return module

    def _init_params(self, cls: Class) -> tuple[p.Param, ...]:
        init = self.class_member(cls, "__init__")
        return init.node.params if isinstance(init, Function) else ()

    def _special_base(self, cls: Class) -> str:
        for base in cls.bases:
            name = base.name if isinstance(base, External) else base.node.name if isinstance(base, Class) else ""
            last = name.split(".")[-1]
            if last == "Optimizer" or (
                name.startswith("torch.optim.") and last[:1].isupper() and "lr_scheduler" not in name
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

    # --- calls that cannot be seen into --------------------------------------------------------

    def unknown_call(self, site: Site, name: str) -> Value:
        """A call without known meaning: what it returns descends from what it was given."""
        values = site.all_args()
        tensors = [t for v in values for t in self.tensors_in(v)]
        if isinstance(site.receiver, Tensor):
            tensors.append(site.receiver)
        last = path_terminal(name)
        self._check_escape(site, last, values, tensors)
        hidden = self._settings(values)
        receiver = site.receiver
        if isinstance(receiver, Module) and any(self.is_data(v) for v in values) and not _BENIGN.search(last):
            meaning = method_meaning("module", "forward")  # `model.training_step(batch)` and the like
            result = meaning(self, Site("forward", values, {}, site.node, site.frame, receiver, site.star)) if meaning else None
            if result is not None:
                return result
        fed = [v for v in values if isinstance(v, Module)]
        if (
            fed
            and not isinstance(receiver, Module | Optimizer)
            and (tensors or any(self.is_data(v) for v in values))
            and not _BENIGN.search(last)
        ):
            meaning = method_meaning("module", "forward")  # a helper that runs the model it is given
            result = (
                meaning(self, Site("forward", values, {}, site.node, site.frame, fed[0], site.star))
                if meaning
                else None
            )
            if result is not None:
                return result
        if tensors:
            live = [t for t in tensors if t.grad]
            if (
                len(live) == 1
                and len(tensors) == 1
                and any(t.coefficient.value != 1 or t.coefficient.symbols for t in live[0].terms)
            ):
                out = live[0].copy()
                out.hidden |= hidden
                return out
            mixed = self.mix(tensors, f"{last}(…)", hidden)
            if isinstance(receiver, Module):
                mixed.modules |= receiver.modules
            return mixed
        modules = frozenset().union(*(self.modules_in(v) for v in values)) if values else frozenset()
        data = any(self.is_data(v) for v in values)
        if isinstance(receiver, Opaque):
            data = data or receiver.data
            if not isinstance(receiver, Optimizer):
                modules |= receiver.modules
        path = p.text(site.node)
        if len(path) > 100:
            path = f"{name}(…)"
        if (
            not data
            and self.loops
            and not values
            and not isinstance(receiver, Module | Optimizer)
            and not last.startswith(("is_", "get_world", "get_rank"))
        ):
            loops_data = not isinstance(receiver, Opaque) or receiver.kind == "loader" or bool(_FETCH.search(last))
            if loops_data and last not in {"time", "perf_counter", "get_last_lr", "now", "is_available"}:
                return Opaque(path, data=True, born=self.token(), modules=modules)
        kind = ""
        if "optim" in last.lower() and modules and "scheduler" not in last.lower():
            optimizer = self.make_optimizer(f"#{self.tick()}", modules)
            return optimizer
        opaque = Opaque(
            path,
            kind,
            data=data,
            born=max([self.token(), *map(self.born_of, values)]) if data else self.token(),
            modules=modules,
        )
        lazy = next((v for v in values if isinstance(v, Range | Iterable | Iterator | GeneratorCall)), None)
        if lazy is not None and not data and _WRAPS.search(last):
            return lazy
        loader = next((v for v in values if isinstance(v, Opaque) and v.kind == "loader"), None)
        if loader is not None:
            opaque.kind, opaque.length = "loader", length_of(self, loader)
            opaque.modules = frozenset()
        wrapped = [v for v in values if isinstance(v, Module)]
        if len(wrapped) == 1 and len(values) <= 3 and not data and last not in {"len", "isinstance", "type", "print"}:
            if last.lower() in {"ema", "modelema", "ema_model"} or "ema" in last.lower() or "copy" in last.lower():
                opaque.modules = frozenset()
        return opaque

    def _settings(self, values: list[Value]) -> frozenset[str]:
        """Spellings of the settings handed to a call."""
        out: set[str] = set()
        for value in values:
            if isinstance(value, Lit):
                out |= value.keys
            elif (
                isinstance(value, Opaque)
                and not value.data
                and not isinstance(value, Module | Optimizer)
                and not value.kind
            ):
                out.add(value.path)
        return frozenset(out)

    def _check_escape(self, site: Site, last: str, values: list[Value], tensors: list[Tensor]) -> None:
        optimizer = next((v for v in values if isinstance(v, Optimizer)), None)
        if optimizer is not None and _STEPS.match(last) and not any(t.grad for t in tensors):
            self.step(optimizer, site.span)  # xm.optimizer_step(optimizer), trainer.optimize(opt)
            return
        if optimizer is None or _BENIGN.search(last):
            return
        if any(t.grad for t in tensors) or any(isinstance(v, Function) for v in values):
            self.escape(site.span, f"the optimizer goes into `{last}`, which galint cannot see into")

    # --- with ----------------------------------------------------------------------------------

    def enter_context(self, value: Value, item: p.WithItem, frame: Frame) -> Context | None:
        """Enter a context manager: those with a meaning become active."""
        bound: Value = value
        if isinstance(value, Bound) and value.name in {"no_sync", "no_backward_sync"}:
            value = self.call_value(value, [], {}, _as_call(item.context, None), frame)
        context = value if isinstance(value, Context) else None
        if isinstance(value, Instance):
            enter = self.class_member(value.cls, "__enter__")
            if isinstance(enter, Function):
                bound = self.call_function(enter, [value], {}, item)
            context = Context("instance", value, item.span)
        if context is not None:
            contexts.enter(self, context, frame)
            if context.data.get("as") is not None:
                bound = context.data["as"]
        if item.target is not None:
            self.bind(item.target, bound, frame)
        return context

    def exit_context(self, context: Context) -> None:
        """Leave a context manager."""
        if context.kind == "instance" and isinstance(context.target, Instance):
            leave = self.class_member(context.target.cls, "__exit__")
            if isinstance(leave, Function):
                try:
                    self.call_function(leave, [context.target, NONE, NONE, NONE], {}, leave.node)
                except UserRaise:
                    return
            return
        contexts.leave(self, context)


def is_update_effect(func: p.Expr) -> bool:
    """True for a call that belongs to the optimizer step: a moving average of the weights, AdaLoRA's rank budget."""
    name = terminal(func)
    if name == "update_and_allocate":
        return True
    if isinstance(func, p.Attr) and name in _UPDATES:
        return bool(_AVERAGE.search(terminal(func.value))) or name not in {"update", "step"}
    return bool(_AVERAGE.search(name)) and name.startswith(("update", "ema_step"))


def kind_of(value: Value | None) -> str:
    """The kind under which methods are looked up."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, Module):
        return "module"
    if isinstance(value, Instance):
        return "module" if value.cls.module_like else "instance"
    if isinstance(value, Opaque):
        return value.kind or value.role or "opaque"
    if isinstance(value, Seq):
        return "seq"
    if isinstance(value, Mapping):
        return "mapping"
    if isinstance(value, Lit):
        return "lit"
    if isinstance(value, Iterable | Iterator | Range | GeneratorCall):
        return "iterable"
    if isinstance(value, Context):
        return "context"
    return "opaque"


def _as_call(node: Any, func: Function | None) -> p.Call:
    if isinstance(node, p.Call):
        return node
    return p.Call(node.span, p.Name(node.span, func.name if func else "call"), ())


_ = GRADIENT
