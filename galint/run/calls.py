"""Calls of the abstract run: project functions and classes are followed, others mean what semantics say."""

from __future__ import annotations

import re

from galint import program as p
from galint.ledger import ONE, Coefficient
from galint.run.frame import Frame, UserRaise
from galint.run.names import GRADIENT_METHODS, ONE_RANK, RANK_NAME, SWITCHES
from galint.run.nodes import terminal
from galint.run.opaque_calls import OpaqueCalls
from galint.run.reach import WRAP
from galint.run.site import Site, as_call
from galint.run.update_effects import counts_itself, intervals, is_update_effect
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
    Partial,
    Range,
    Seq,
    Super,
    Tensor,
    Value,
)
from galint.semantics import contexts, function_meaning, lightning, method_meaning
from galint.source import Span

_DEPTH = 40
_APPLIES = re.compile(r"step|update|apply|optimi|minimi|accum", re.I)


def _is_stub(func: p.FunctionDef | p.Lambda) -> bool:
    """A method whose body is left to subclasses: `...`, a bare return, NotImplementedError; `pass` may be meant."""
    if isinstance(func, p.Lambda):
        return False
    for stmt in func.body:
        if isinstance(stmt, p.Return) and stmt.value is not None:
            return isinstance(stmt.value, p.Const) and stmt.value.value is None
        if isinstance(stmt, p.ExprStmt) and not isinstance(stmt.value, p.Const):
            return False
        if isinstance(stmt, p.Raise):
            return stmt.exc is not None and "NotImplemented" in p.text(stmt.exc)
        if not isinstance(stmt, (p.Return, p.ExprStmt)):
            return False
    return True


_INHERITED = lightning.METHODS
_OWN_ATTRIBUTES = frozenset({Instance, Class, Super, ModuleValue})
_KINDS: dict[type, str] = {
    Tensor: "tensor",
    Module: "module",
    Seq: "seq",
    Mapping: "mapping",
    Lit: "lit",
    Iterable: "iterable",
    Iterator: "iterable",
    Range: "iterable",
    GeneratorCall: "iterable",
    Context: "context",
}


class Calls(OpaqueCalls):
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
        if isinstance(func, p.Attr):
            receiver = self.eval(func.value, frame)
            if type(receiver) is Lit:
                receiver = self._called_on(receiver, func, frame)
            callee = self._method(receiver, func.name, func)
        elif isinstance(func, p.Name) and func.id == "super" and not frame.find("super"):
            return self._super(frame)
        else:
            callee = self.eval(func, frame)
        if self.loops and is_update_effect(node):
            inside = callee.func if isinstance(callee, Bound) else callee
            if not counts_itself(node, inside.node if isinstance(inside, Function) else None):
                guards = [*(g.text for g in self.guards), *intervals(frame.function)]
                self.event("update_effect", node.span, p.text(func), guards=guards)
                self.result.facts.setdefault("effects", set()).add(node.span)
        args: list[Value] = []
        kwargs: dict[str, Value] = {}
        star = False
        for arg in node.args:
            value = self.eval(arg.value, frame)
            if not arg.star:
                if arg.keyword:
                    kwargs[arg.keyword] = value
                else:
                    args.append(value)
            elif arg.star == "*":
                if isinstance(value, Seq):
                    args += value.elts
                else:
                    args.append(value)
                    star = True
            else:
                if isinstance(value, Mapping):
                    kwargs.update({str(k): v for k, v in value.items.items()})
                else:
                    kwargs["**"] = value
                    star = True
        return self.call_value(callee, args, kwargs, node, frame, star=star)

    def _called_on(self, receiver: Lit, func: p.Attr, frame: Frame) -> Value:
        """What a method is called on where the run has None or a number."""
        if receiver.value is None:
            # None here means that the run took a branch the program does not take, or that a subclass sets it.
            made = self.make_opaque(p.text(func.value), terminal(func.value))
            if isinstance(func.value, (p.Name, p.Attr)):
                self.bind(func.value, made, frame)
            if func.name in GRADIENT_METHODS:
                self.result.facts["on_none"] = True
            return made
        if func.name == "backward" and receiver.is_number:
            tensor = self.tensor(p.text(func.value), self.token())
            tensor.unknown_scale = True  # a sum whose terms are all switched off here
            self.result.facts["on_none"] = True
            return tensor
        return receiver

    def _method(self, receiver: Value, name: str, func: p.Attr) -> Value:
        kind = type(receiver)
        if kind is Tensor or (kind is Opaque and not receiver.attrs):  # type: ignore[attr-defined]
            return Bound(receiver, name)
        if isinstance(receiver, External):
            return External(f"{receiver.name}.{name}")
        if (
            isinstance(receiver, Instance)
            and receiver.cls.module_like
            and ("module", name) in _INHERITED
            and name not in receiver.attrs
            and self.class_member(receiver.cls, name) is None
        ):
            return Bound(receiver, name)  # LightningModule's own methods
        if type(receiver) in _OWN_ATTRIBUTES:
            return self.get_attr(receiver, name, func)
        if isinstance(receiver, Module):
            found = self.get_attr(receiver, name, func) if name not in receiver.attrs else receiver.attrs[name]
            if isinstance(found, Bound) and found.func is not None:
                return found
            if isinstance(found, Module) and name in receiver.attrs and found.made is not None:
                return found
            return found if found is receiver.inner else Bound(receiver, name)
        if isinstance(receiver, Opaque) and name in receiver.attrs:
            found = receiver.attrs[name]
            if isinstance(found, (Function, Module, Bound, Partial, Class, Instance)):
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
        if type(callee) is Bound and callee.func is None:
            return self._named(
                Site(callee.name, args, kwargs, node, frame, callee.receiver, star), kind_of(callee.receiver)
            )
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
            if "classmethod" in decorators and not isinstance(receiver, Class):
                receiver = receiver.cls if isinstance(receiver, Instance) else callee.func.owner or receiver
            if isinstance(receiver, (Instance, Module)) and _is_stub(callee.func.node):
                # A subclass somewhere says what the hook does.
                return self._named(Site(callee.name, args, kwargs, node, frame, receiver, star), "")
            return self.call_function(callee.func, [receiver, *args], kwargs, node)
        if isinstance(callee, External):
            site = Site(callee.name, args, kwargs, node, frame, None, star)
            meaning = function_meaning(callee.name)
            if meaning is not None:
                result = meaning(self, site)
                if result is not None:
                    return result
            return self.unknown_call(site, callee.name)
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
        if kind == "optimizer" and _APPLIES.search(site.name) and not site.name.startswith("register_"):
            self.result.facts["manual_grad"] = True  # an own method of the optimizer may apply or clear gradients
        base = site.receiver.path if isinstance(site.receiver, (Opaque, Tensor)) else p.text(site.node.func)
        name = base if site.name == "()" else f"{base}.{site.name}"
        return self.unknown_call(site, name)

    def run_forward(self, site: Site) -> Value | None:
        """What a forward pass of the site's receiver gives; None when it has no meaning."""
        meaning = method_meaning("module", "forward")
        return meaning(self, site) if meaning else None

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
                    frame.vars[param.name] = self._default(param.name, default, func)
                else:
                    frame.vars[param.name] = self.make_opaque(param.name, param.name)
        return frame

    def _default(self, name: str, default: Value, func: Function) -> Value:
        if isinstance(default, Lit) and default.value is None and ONE_RANK.search(name):
            if WRAP in self.static.tags(func.node):  # what a launcher in another file gives
                return Lit(0 if RANK_NAME.search(name) else 2, frozenset({name}), text=name)
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
            return self.unknown_call(Site(func.name, args, kwargs, as_call(node, func), func.closure), func.name)
        frame = self.new_frame(func, args, kwargs)
        frame.depth = len(self.guards)
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

    # --- with ----------------------------------------------------------------------------------

    def enter_context(self, value: Value, item: p.WithItem, frame: Frame) -> Context | None:
        """Enter a context manager: those with a meaning become active."""
        bound: Value = value
        if isinstance(value, Bound) and value.name in {"no_sync", "no_backward_sync"}:
            value = self.call_value(value, [], {}, as_call(item.context, None), frame)
        context = value if isinstance(value, Context) else None
        if type(value) is Opaque and SWITCHES.search(value.path):  # out of sight, where it may do so or not
            self.event("sync_flag", item.span, value.path, on=True, known=False)
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


def kind_of(value: Value | None) -> str:
    """The kind under which methods are looked up."""
    known = _KINDS.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Instance):
        return "module" if value.cls.module_like else "instance"
    if isinstance(value, Opaque):
        return value.kind or value.role or "opaque"
    return "opaque"
