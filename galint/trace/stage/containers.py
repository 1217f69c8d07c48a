"""Containers of the stage: subscripts, displays, and values unpacked to the shape of their targets."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from galint.trace.stage.members import Members
from galint.trace.stage.values import Flow, Instance, Unknown

PLAIN = bool | int | float | str | bytes | None


_STEPS = frozenset({"optimizer", "scaler", "scheduler"})


class Containers(Members):
    """The part of the stage that puts values into things and takes them out."""

    def named(self, value: Any, name: str, made: bool = False) -> Any:
        """A value gets the kind that its new name suggests. `made` says that a function of the file returned it."""
        if made and value == [] and isinstance(value, list):
            # Settings decide what is in it: as many elements as the abstract run took.
            value += [Unknown(self, f"{name}[{k}]") for k in range(int(self.known.get(f"len({name})") or 0))]
        if (value is None or isinstance(value, Flow)) and self.kind(name) in _STEPS:
            # What an unknown function returned, whatever it was given, or what no branch of it that is known returned.
            return Unknown(self, name, self.kind(name), name)
        if isinstance(value, Unknown) and not value.kind and not value.data and value.actor is None:
            if name in self.settings and ("(" in value.path or " " in value.path):
                return self.settings[name]  # N worked out of numbers that only the command line knows
            value.kind = self.kind(name)
            value.name = name
        return value

    def slice(self, lower: Any, upper: Any, step: Any) -> Any:
        """A slice object, unknown bounds left open."""
        return slice(*(v if isinstance(v, int) else None for v in (lower, upper, step)))

    def item(self, holder: Any, index: Any, text: str) -> Any:
        """`holder[index]`."""
        holder = self.real(holder)
        if isinstance(holder, Flow):
            if holder.parts and isinstance(index, int) and -len(holder.parts) <= index < len(holder.parts):
                return holder.parts[index]
            return holder
        if isinstance(holder, list | tuple | str | dict | range):
            try:
                return holder[index]
            except (TypeError, KeyError, IndexError):
                return Unknown(self, text)
        if isinstance(holder, Instance) and isinstance(index, str):
            return self.attr(holder, index)
        if isinstance(holder, Unknown):
            return self.part(holder, f"[{index!r}]" if isinstance(index, str | int) else "[·]", text, index)
        number = self.number(text)
        return Unknown(self, text) if number is None else number

    def set_item(self, holder: Any, index: Any, value: Any) -> None:
        """`holder[index] = value`; learning rates in parameter groups stay."""
        if isinstance(holder, list | dict):
            with contextlib.suppress(TypeError, IndexError):
                holder[index] = value
        elif isinstance(holder, Unknown) and isinstance(index, str | int):
            holder.attrs[f"[{index!r}]"] = value
        elif isinstance(holder, Instance) and isinstance(index, str):
            holder.attrs[index] = value

    def mapping(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        """A dict display; keys that are unknown count by their spelling."""
        out: dict[Any, Any] = {}
        for key, value in pairs:
            if key is ...:
                out.update(self.keywords(value))
            else:
                out[key if isinstance(key, PLAIN | tuple) else repr(key)] = value
        return out

    def keywords(self, value: Any) -> dict[str, Any]:
        """What `**value` gives."""
        return {k: v for k, v in value.items() if isinstance(k, str)} if isinstance(value, dict) else {}

    def spread(self, value: Any) -> list[Any]:
        """What `*value` gives."""
        if isinstance(value, list | tuple):
            return list(value)
        if isinstance(value, Unknown) and value.data:
            return [value]
        if isinstance(value, Unknown | Flow | Instance):
            return []
        try:
            return list(value)
        except TypeError:
            return []

    def unpack(self, value: Any, shape: Any) -> Any:
        """`value` in the shape of an assignment's targets: nested tuples of names, `*` for the rest."""
        if not isinstance(shape, tuple):
            return self.named(value, shape) if isinstance(shape, str) and shape != "*" else value
        count = len(shape)
        value = self.real(value) if not isinstance(value, Unknown) else value
        if isinstance(value, list | tuple) and len(value) == count and "*" not in shape:
            parts = list(value)
        elif isinstance(value, list | tuple) and "*" in shape and len(value) >= count - 1:
            cut = shape.index("*")
            rest = len(value) - count + 1
            parts = [*value[:cut], list(value[cut : cut + rest]), *value[cut + rest :]]
        elif isinstance(value, Flow):
            parts = [value] * count
        elif isinstance(value, Unknown):
            parts = [self.part(value, f"[{k}]", f"{value.path}[{k}]", k) for k in range(count)]
            for part in parts:
                if isinstance(part, Unknown):
                    part.modules = part.modules or value.modules
        else:
            parts = [Unknown(self, f"#{k}", data=isinstance(value, torch.Tensor)) for k in range(count)]
        return tuple(self.unpack(v, s) for v, s in zip(parts, shape, strict=True))
