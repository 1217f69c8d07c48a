"""Calls that cannot be seen into: what they return descends from what they were given, and what escapes."""

from __future__ import annotations

import re

from galint import program as p
from galint.ledger import ONE
from galint.run.classes import Classes
from galint.run.elements import length_of
from galint.run.nodes import path_terminal
from galint.run.reach import BACKWARD
from galint.run.site import Site
from galint.run.values import (
    Function,
    GeneratorCall,
    Iterable,
    Iterator,
    Lit,
    Mapping,
    Module,
    Opaque,
    Optimizer,
    Range,
    Seq,
    Tensor,
    Value,
)
from galint.run.words import Words

_WRAPS = re.compile(r"every|iter|progress|track|wrap|bar|log|prefetch|tqdm|enumerat|loop|watch|monitor|time", re.I)
_STEPS = re.compile(r"^(optimize|optimizer_step|optim_step|step_optimizer|step|take_step|apply_gradients)$")
_FETCH = Words(r"next|get|fetch|sample|batch|draw|pop|read|load|data|generate", re.I)
_MAKES = Words(r"optim|sched|build|create|make_|wrap|setup|register", re.I)
_BUILDS = Words(r"model|(^|_)net(work)?(_|$)|optim|sched|factory|(^|_)(make|build|create)(_|$)", re.I)
"""What makes something to train with anew, in a loop over folds or tasks."""
_BENIGN = Words(
    r"load|save|state|sched|print|init|log(?!it)|resume|checkpoint|ckpt|prepare|lr|len|isinstance|type|hasattr|ema",
    re.I,
)


_ENDLESS = re.compile(r"(^|_)(cycle|cycled|infinite|endless|forever|inf_?loop)(_|$)|^(Infinite|Endless|Cycl)[A-Za-z]*$")
"""What starts a loader again whenever it ends."""
_CUTS = re.compile(r"slice|segment|crop|gather|index|select", re.I)
"""What takes parts of its first argument, at places which the others say and to which no gradient flows."""
_HARMLESS = frozenset({"__", "zero_", "clamp_", "clip_", "nan_to_num_", "detach_", "requires_grad_"})
"""What is done to a gradient in place without scaling it as a whole."""
_LIVE = (Module, Optimizer)
_HOLDS_TENSORS = (Tensor, Seq, Mapping)
_LAZY = (Range, Iterable, Iterator, GeneratorCall)


class OpaqueCalls(Classes):
    """Calls without known meaning."""

    # The layer above, which knows what calls mean, fills this in.
    def run_forward(self, site: Site) -> Value | None:
        """What a forward pass of the site's receiver gives; None when it has no meaning."""
        raise NotImplementedError

    def unknown_call(self, site: Site, name: str) -> Value:
        """A call without known meaning: what it returns descends from what it was given."""
        values = site.all_args()
        kinds = {type(v) for v in values}
        # Most calls have no such argument, and looking into each costs more than looking at its type.
        tensors = [] if kinds.isdisjoint(_HOLDS_TENSORS) else [t for v in values for t in self.tensors_in(v)]
        if isinstance(site.receiver, Tensor):
            tensors.append(site.receiver)
        last = path_terminal(name)
        if Optimizer in kinds:
            self._check_escape(site, last, values, tensors)
        if last.endswith("_") and last not in _HARMLESS and _changes_gradient(site):
            self.result.facts["manual_grad"] = True
        receiver = site.receiver
        if last in {"values", "items"} and isinstance(receiver, Opaque) and "__divided__" in receiver.items:
            self.items_scaled = True
        if Function in kinds and self.loops and (given := self._training_function(values)) is not None:
            return self.call_value(given, [], {}, site.node, site.frame)  # `timed(train_step)`
        data = any(self.is_data(v) for v in values)
        if data and isinstance(receiver, Module) and not _BENIGN.search(last):
            # `model.training_step(batch)` and the like
            result = self.run_forward(Site("forward", values, {}, site.node, site.frame, receiver, site.star))
            if isinstance(result, Tensor) and receiver.wrap == "ddp" and last in self._called_inside():
                result.synced = {}  # DDP hands on no method of the network's: where this line runs, nothing is wrapped
            if result is not None:
                return result
        fed = [v for v in values if isinstance(v, Module)] if Module in kinds else []
        if (
            fed
            and not _MAKES.search(last)
            and not isinstance(receiver, _LIVE)
            and (tensors or data)
            and not _BENIGN.search(last)
        ):
            # a helper that runs the model it is given
            result = self.run_forward(Site("forward", values, {}, site.node, site.frame, fed[0], site.star))
            if result is not None:
                return result
        if tensors and not isinstance(receiver, Tensor) and _CUTS.search(last) and self._cuts_data(values):
            return Opaque(f"{last}(…)", data=True, born=self.born_of(values[0]))
        if tensors:
            hidden = self._settings(values)
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
            if live and any(t.coefficient != ONE for held in tensors if not held.grad for t in held.terms):
                mixed.unknown_scale = True  # a constant that is not one goes in: it may scale
            if isinstance(receiver, Module):
                mixed.modules |= receiver.modules
            return mixed
        modules = frozenset().union(*(self.modules_in(v) for v in values)) if values else frozenset()
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
            and not isinstance(receiver, _LIVE)
            and not last.startswith(("is_", "get_world", "get_rank"))
        ):
            loops_data = not isinstance(receiver, Opaque) or receiver.kind == "loader" or bool(_FETCH.search(last))
            loops_data = loops_data and not (_BUILDS.search(last) and not _FETCH.search(last))
            if loops_data and last not in {"time", "perf_counter", "get_last_lr", "now", "is_available"}:
                return Opaque(path, data=True, born=self.token(), modules=modules)
        kind = ""
        if "optim" in last.lower() and modules and "scheduler" not in last.lower():
            optimizer = self.make_optimizer(f"#{self.tick()}", modules)
            return optimizer
        born = max([self.token(), *map(self.born_of, values)]) if data else self.token()
        if isinstance(receiver, Module) and not site.node.args:
            born = 0  # a table of the network's own comes from no micro-batch
        opaque = Opaque(path, kind, data=data, born=born, modules=modules)
        lazy = None if kinds.isdisjoint(_LAZY) else next(v for v in values if isinstance(v, _LAZY))
        if lazy is not None and not data and _WRAPS.search(last):
            return lazy
        loader = next((v for v in values if isinstance(v, Opaque) and v.kind == "loader"), None)
        if loader is not None and _ENDLESS.search(last) and len(values) == 1:
            return Iterable("cycle", [loader])
        if loader is not None:
            opaque.kind, opaque.length = "loader", length_of(self, loader)
            opaque.modules = frozenset()
        if len(fed) == 1 and len(values) <= 3 and not data and last not in {"len", "isinstance", "type", "print"}:
            if last.lower() in {"ema", "modelema", "ema_model"} or "ema" in last.lower() or "copy" in last.lower():
                opaque.modules = frozenset()
        return opaque

    def _called_inside(self) -> frozenset[str]:
        """The methods that the program calls on what a wrapper holds: `model.module.score(x)`."""
        return self.static.once("called inside", self._find_called_inside)

    def _find_called_inside(self) -> frozenset[str]:
        funcs = (c.func for c in self.static.calls if isinstance(c.func, p.Attr))
        return frozenset(f.name for f in funcs if isinstance(f.value, p.Attr) and f.value.name == "module")

    def _cuts_data(self, values: list[Value]) -> bool:
        """Whether the first argument is of the loader's data, and no network's."""
        return (
            bool(values)
            and self.is_data(values[0])
            and not any(t.grad or t.modules for t in self.tensors_in(values[0]))
        )

    def _training_function(self, values: list[Value]) -> Function | None:
        """A function without arguments that runs backward and is handed to code out of sight, which calls it."""
        return next((v for v in values if isinstance(v, Function) and self._trains_alone(v.node)), None)

    def _trains_alone(self, node: p.Node) -> bool:
        return isinstance(node, p.FunctionDef) and not node.params and BACKWARD in self.static.tags(node)

    def _settings(self, values: list[Value]) -> frozenset[str]:
        """Spellings of the settings handed to a call."""
        out: set[str] = set()
        for value in values:
            if isinstance(value, Lit):
                out |= value.keys
            elif isinstance(value, Opaque) and not value.data and not isinstance(value, _LIVE) and not value.kind:
                out.add(value.path)
        return frozenset(out)

    def _check_escape(self, site: Site, last: str, values: list[Value], tensors: list[Tensor]) -> None:
        optimizer = next((v for v in values if isinstance(v, Optimizer)), None)
        if optimizer is not None and _STEPS.match(last) and not any(t.grad for t in tensors):
            self.step(optimizer, site.span)  # xm.optimizer_step(optimizer), trainer.optimize(opt)
            if last != "optimizer_step":  # a helper out of sight may clear as well
                self.clear_applied()
            return
        if optimizer is None or _BENIGN.search(last):
            return
        if any(t.grad for t in tensors) or any(isinstance(v, Function) for v in values):
            self.escape(site.span, f"the optimizer goes into `{last}`, which galint cannot see into")


def _changes_gradient(site: Site) -> bool:
    """True for a call on a gradient (`net.weight.grad.div_(n)`); with a name like `add_` it changes it in place."""
    func = site.node.func
    return isinstance(func, p.Attr) and ".grad" in f".{path_terminal(p.text(func.value).removesuffix('.data'))}"
