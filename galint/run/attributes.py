"""What a name, an attribute or an item is, unknown ones remembered as opaque values."""

from __future__ import annotations

from galint import program as p
from galint.run.asked import rounded
from galint.run.frame import Frame
from galint.run.gradients import Gradients
from galint.run.names import (
    BUILTINS,
    CONFIG,
    GRADIENT_METHODS,
    MICRO_SIZE,
    MODULE_METHODS,
    ONE_RANK,
    ONE_WINDOW,
    RANK_NAME,
    SETTINGS,
)
from galint.run.nodes import global_name, path_terminal, terminal
from galint.run.values import (
    FALSE,
    TRUE,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Iterable,
    Iterator,
    Lit,
    Mapping,
    Module,
    ModuleValue,
    Opaque,
    Optimizer,
    Range,
    Seq,
    Super,
    Tensor,
    Value,
)

_STARRED = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim"}
"""What a name means that nothing in sight binds, for a star imports it from a file that is not followed."""


class Attributes(Gradients):
    """Names, attributes and items."""

    # The layers above fill these in.
    def eval(self, node: p.Expr, frame: Frame) -> Value:
        """The value of an expression."""
        raise NotImplementedError

    def call_function(self, func: Function, args: list[Value], kwargs: dict[str, Value], node: p.Node) -> Value:
        """Run a project function."""
        raise NotImplementedError

    # --- names ---------------------------------------------------------------------------------

    def eval_name(self, node: p.Name, frame: Frame) -> Value:
        """A name: local, enclosing, global, builtin, or opaque."""
        holder: Frame | None = frame
        name = node.id
        while holder is not None:
            value = holder.vars.get(name)
            if value is not None:
                return self.soft(value) if type(value) is Lit and value.keys else value
            holder = holder.parent
        if name in BUILTINS:
            return External(f"builtins.{name}")
        if name == "__name__":
            return Lit("__main__")
        if name in _STARRED and self._is_package(name):
            return External(_STARRED[name])
        made = self.make_opaque(name, name)
        frame.globals.vars[name] = made
        return made

    def _is_package(self, name: str) -> bool:
        """Whether a name that nothing binds is used as torch's package: a network or an optimizer may be called so."""
        called = self.static.uses.get(name, set())
        if name == "F":
            return bool(called) and "()" not in called
        return name == "torch" or all(method[:1].isupper() for method in called)

    def soft(self, value: Value) -> Value:
        """A setting's default, or the value that this run gives the setting instead."""
        if type(value) is not Lit or value.text not in value.keys:
            return value
        if isinstance(value.value, int):
            if value.value <= 1 and not isinstance(value.value, bool) and value.text not in self.scenario.values:
                value = self._meant(value)
            self.settings[value.text] = int(self.scenario.values.get(value.text, value.value))
        if value.text and value.text in self.scenario.values and value.text in value.keys:
            return Lit(self.scenario.values[value.text], value.keys, value.moduli, value.born, value.text)
        return value

    def _meant(self, value: Lit) -> Lit:
        """A default that switches a feature off, read as if the feature were on: one rank, a window of one."""
        name = path_terminal(value.text)
        if ONE_RANK.search(name):
            if name == value.text:
                return value  # a plain assignment says what it means
            number = 0 if RANK_NAME.search(name) else 2
        elif ONE_WINDOW.search(name) and (value.value != 0 or name in self.static.divisors):  # nothing is divided by 0
            number = 2 if MICRO_SIZE.search(name) else self.scenario.window
        else:
            return value
        return Lit(number, value.keys, value.moduli, value.born, value.text)

    # --- attributes ----------------------------------------------------------------------------

    def goes_on(self, value: Opaque) -> bool:
        """True for a loop's own number plus one that is not known (`idx + options.begin`): where a training goes on from."""
        if value.deferred is None or value.deferred[0] != "+":
            return False
        sides = [self.resolve(side) for side in value.deferred[1:] if isinstance(side, Value)]
        return any(type(side) is Lit and side.born > 0 for side in sides)

    def eval_attr(self, node: p.Attr, frame: Frame) -> Value:
        """`value.name`."""
        receiver = self.eval(node.value, frame)
        value = self.get_attr(receiver, node.name, node)
        if type(receiver) is Opaque and type(value) is Bound and p.text(node) in self.static.counted:
            value = receiver.attrs[node.name] = self.make_opaque(f"{receiver.path}.{node.name}", node.name)
        return value

    def get_attr(self, value: Value, name: str, node: p.Expr) -> Value:
        """The attribute of a value; unknown ones are opaque and remembered."""
        if type(value) is Opaque:
            return self._opaque_attr(value, name)
        if isinstance(value, External):
            return External(f"{value.name}.{name}")
        if isinstance(value, ModuleValue):
            found = value.frame.vars.get(name)
            return self.soft(found) if found is not None else External(f"{value.name}.{name}")
        if isinstance(value, Module):
            return self._module_attr(value, name)
        if isinstance(value, Instance):
            return self._instance_attr(value, name, node)
        if isinstance(value, Opaque):
            return self._opaque_attr(value, name)
        if isinstance(value, Tensor):
            return self.tensor_attr(value, name)
        if isinstance(value, Class):
            found = self.class_member(value, name)
            if isinstance(found, Function):
                if any(terminal(d) == "classmethod" for d in getattr(found.node, "decorators", ())):
                    return Bound(value, name, found)
            return self.soft(found) if found is not None else Opaque(f"{value.node.name}.{name}")
        if isinstance(value, Super):
            for base in value.cls.bases:
                if isinstance(base, Class):
                    found = self.class_member(base, name)
                    if isinstance(found, Function):
                        return Bound(value.instance, name, found)
            own = value.instance.items.get("__super__") if isinstance(value.instance, Opaque) else None
            return Bound(own or Opaque("super()"), name)
        if isinstance(value, Bound) and value.func is None and isinstance(value.receiver, Opaque):
            return Opaque(f"{value.receiver.path}.{value.name}.{name}")
        if isinstance(value, (Mapping, Seq, Iterator, Lit, Iterable, Range)):
            return Bound(value, name)
        return Opaque(p.text(node))

    def _module_attr(self, value: Module, name: str) -> Value:
        if name in value.attrs:
            return value.attrs[name]
        if name == "module" and value.inner is not None:
            return value.inner
        if name == "require_backward_grad_sync":
            return TRUE if value.sync else FALSE
        if name == "training":
            return TRUE if value.training else FALSE
        if name in {"device", "config", "dtype"}:
            return Opaque(f"{value.path}.{name}")
        if name in MODULE_METHODS:
            return Bound(value, name)
        if value.cls is not None:
            owner = value.items.get("__class__")
            if isinstance(owner, Class):
                found = self.class_member(owner, name)
                if isinstance(found, Function):
                    return Bound(value, name, found)
                if found is not None:
                    return found
        if name == "module":
            inner = self.make_module(f"{value.path}.module", self.ancestors[value.ident])
            inner.modules |= value.modules
            value.attrs[name] = inner
            return inner
        if self.static.kind_of(name) == "optimizer":
            made = self.make_optimizer(f"{value.path}.{name}", value.modules)
            value.attrs[name] = made
            return made
        sub = self.make_module(f"{value.path}.{name}", self.ancestors[value.ident])
        value.attrs[name] = sub
        return sub

    def _instance_attr(self, value: Instance, name: str, node: p.Expr) -> Value:
        if name in value.attrs:
            return self.soft(value.attrs[name])
        found = self.class_member(value.cls, name)
        if isinstance(found, Function):
            if any(terminal(d) in {"property", "cached_property"} for d in getattr(found.node, "decorators", ())):
                return self.call_function(found, [value], {}, node)
            if any(terminal(d) == "staticmethod" for d in getattr(found.node, "decorators", ())):
                return found
            return Bound(value, name, found)
        if found is not None:
            return self.soft(found)
        if value.cls.module_like and name in MODULE_METHODS:
            return Bound(value, name)
        made = self.make_opaque(f"{value.path}.{name}", name)
        if isinstance(made, Module) and value.modules:
            made.modules |= value.modules
        value.attrs[name] = made
        return made

    def _opaque_attr(self, value: Opaque, name: str) -> Value:
        if name in value.attrs:
            return self.soft(value.attrs[name])
        defaults = value.items.get("__defaults__")
        if isinstance(defaults, Mapping) and name in defaults.items:
            default = defaults.items[name]
            if isinstance(default, Lit):
                path = f"{value.path}.{name}"
                return self.soft(Lit(default.value, frozenset({path}), text=path))
            return default
        if value.role == "param" and name in {"grad", "main_grad"}:
            made = Opaque(f"{value.path}.grad", role="grad", modules=value.modules)
            value.attrs[name] = made
            return made
        if value.role == "grad" and name == "data":
            return value
        if value.role == "param" and name == "requires_grad":
            return TRUE  # a frozen parameter has no gradient to speak of
        if isinstance(value, Optimizer) and name == "param_groups":
            return self._param_groups(value)
        settings = CONFIG.search(value.path) or SETTINGS.search(value.path)
        kind = "" if value.data or settings else self.static.kind_of(name)
        if value.kind in {"namespace", "config"}:
            kind = ""
        if name in GRADIENT_METHODS and kind == "" and not any(map(CONFIG.search, value.path.split("."))):
            return Bound(value, name)
        if value.kind == "scaler" and name == "_per_optimizer_states":
            self.result.facts["asks_scaler"] = True  # the program looks up itself whether it has unscaled
        if value.kind == "argparser":
            return Bound(value, name)  # `arg = parser.add_argument`
        made = self.make_opaque(
            f"{value.path}.{name}", name if kind else "", data=value.data, born=value.born, kind=kind
        )
        if value.modules and not made.modules:
            made.modules = value.modules
        op, whole, factor = value.deferred or ("", value, value)
        if op in {"*", "/"} and isinstance(whole, Opaque):
            # An object of losses that divides itself: so are the losses in it.
            made.deferred = (op, self._opaque_attr(whole, name), factor)
            made.depth = value.depth
        value.attrs[name] = made
        return made

    def _param_groups(self, optimizer: Optimizer) -> Opaque:
        """`optimizer.param_groups`: one group stands for all, as one parameter stands for all of a module's."""
        path = f"{optimizer.path}.param_groups"
        groups, group = Opaque(path, modules=optimizer.modules), Opaque(f"{path}[·]", modules=optimizer.modules)
        group.items["params"] = Opaque(f"{path}[·]['params']", "params", modules=optimizer.modules)
        groups.elements, groups.items[0] = [group], group
        optimizer.attrs["param_groups"] = groups
        return groups

    def tensor_attr(self, value: Tensor, name: str) -> Value:
        """An attribute of a tensor or of a model's output."""
        if name in {"shape", "ndim", "dtype", "device", "is_cuda"}:
            return Opaque(f"{value.path}.{name}", data=name == "shape", born=value.born)
        if name in {"data"}:
            out = value.copy()
            out.grad = False
            return out
        if name == "requires_grad":
            return TRUE if value.grad else FALSE
        if name == "grad":
            return Opaque(f"{value.path}.grad", role="grad", modules=value.modules)
        out = value.copy()
        out.path = f"{value.path}.{name}"
        return out

    def class_member(self, cls: Class, name: str) -> Value | None:
        """Look a name up in a class and its project bases."""
        if name in cls.members:
            return cls.members[name]
        for base in cls.bases:
            if isinstance(base, Class):
                found = self.class_member(base, name)
                if found is not None:
                    return found
        return None

    # --- items ---------------------------------------------------------------------------------

    def eval_subscript(self, node: p.Subscript, frame: Frame) -> Value:
        """`value[index]`."""
        value = self.eval(node.value, frame)
        if isinstance(node.index, p.Slice):
            return self._slice(value, node.index, frame, node)
        index = self.eval(node.index, frame)
        if (name := global_name(node)) in frame.globals.vars:
            return frame.globals.vars[name]
        return self.get_item(value, index, node)

    def _slice(self, value: Value, part: p.Slice, frame: Frame, node: p.Expr) -> Value:
        bounds = [self.eval(b, frame) if b is not None else None for b in (part.lower, part.upper, part.step)]
        if isinstance(value, Seq):
            numbers = [b.value if isinstance(b, Lit) and isinstance(b.value, int) else None for b in bounds]
            if all(n is not None or b is None for n, b in zip(numbers, bounds, strict=True)):
                return Seq(value.elts[slice(*numbers)], value.kind)
            return value
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Opaque):
            below, above, _ = bounds
            if below is None and isinstance(above, Opaque) and rounded(above) is not None and not value.data:
                return Iterable("islice", [value], above)  # `batches[: len(batches) // N * N]`
            born = max([value.born, *(self.born_of(b) for b in bounds if b)])
            cut = born > value.born and not (value.kind or value.role or value.modules)  # by what a loop counts
            if value.data or value.kind == "loader" or cut:
                return Opaque(f"{value.path}[…]", data=True, born=born)
            return value
        return Opaque(p.text(node), data=self.is_data(value))

    def get_item(self, value: Value, index: Value, node: p.Expr) -> Value:
        """`value[index]` for an evaluated index."""
        if isinstance(index, Opaque):
            index = self.resolve(index)
        if isinstance(value, Seq):
            if isinstance(index, Lit) and isinstance(index.value, int) and value.elts:
                if -len(value.elts) <= index.value < len(value.elts):
                    return self.soft(value.elts[index.value])
            return value.elts[0] if value.elts else Opaque(p.text(node), data=True, born=self.token())
        if isinstance(value, Mapping):
            if isinstance(index, Lit) and index.value in value.items:
                return self.soft(value.items[index.value])
            if isinstance(index, Lit):
                path = f"{value.path or p.text(node)}[{index.value!r}]" if value.path else p.text(node)
                made = self.make_opaque(path, str(index.value) if isinstance(index.value, str) else "")
                value.items[index.value] = made
                return made
            return next(iter(value.items.values()), Opaque(p.text(node)))
        if isinstance(value, Tensor) or (isinstance(value, Class) and not isinstance(index, Lit)):
            return value  # `Trainer[Net]` is `Trainer` with a type
        if isinstance(value, Optimizer) and not isinstance(index, Lit):
            return value  # `for key in optimizers: optimizers[key].step()`: one stands for all
        if isinstance(value, Opaque):
            key = index.value if isinstance(index, Lit) else getattr(index, "path", None)
            if not value.data and key is not None and not (isinstance(index, Lit) and index.born):
                if key in value.items:
                    return self.soft(value.items[key])
                name = key if isinstance(key, str) and isinstance(index, Lit) else ""
                kind = name if not SETTINGS.search(value.path) else ""  # a section of settings about optimizers
                if isinstance(value, Optimizer) and isinstance(index, Lit):
                    value.items[key] = self.make_optimizer(f"{value.path}[{key!r}]")  # a container of optimizers
                    return value.items[key]
                defaults = value.items.get("__defaults__")
                if isinstance(defaults, Mapping) and key in defaults.items:
                    return defaults.items[key]
                made = self.make_opaque(
                    f"{value.path}[{key!r}]" if name else f"{value.path}[{key}]", kind, born=value.born
                )
                made.modules |= value.modules
                value.items[key] = made
                return made
            if isinstance(stored := value.items.get(key), Tensor):
                return stored  # `batch["prediction"] = model(batch["input"])`
            named = isinstance(index, Lit) and isinstance(index.value, str) and value.data and value.born
            # Each index finds samples of its own; `batch[task]` is a part of the one batch, whatever the loop over tasks.
            born = value.born if named else max(value.born, self.born_of(index))
            if (isinstance(index, Lit) and index.born) or self.is_data(index):
                return Opaque(p.text(node), data=True, born=born, modules=value.modules)
            return Opaque(f"{value.path}[…]", data=value.data, born=born, modules=value.modules)
        if isinstance(value, External):
            return Opaque(p.text(node))
        return Opaque(p.text(node), data=self.is_data(value), born=self.born_of(value))
