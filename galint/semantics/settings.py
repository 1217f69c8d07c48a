"""Settings: argparse parsers with their defaults, and the namespaces that hold values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import NONE, Lit, Mapping, Opaque, Seq, Value
from galint.semantics.iterables import first_arg
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _namespace(m: Calls, s: Site) -> Value | None:
    out = Opaque(f"#{m.tick()}", "namespace")
    given = dict(s.kwargs)
    inner = given.pop("**", None)
    out.items["__defaults__"] = Mapping(dict(given))
    if isinstance(inner, Mapping):
        out.items["__defaults__"] = Mapping({**inner.items, **given})
    return out


def _easy_dict(m: Calls, s: Site) -> Value | None:
    """A dictionary with attributes, made of another one or of keywords."""
    return _namespace(m, s) if s.kwargs and not s.args else first_arg(m, s)


def _parser(m: Calls, s: Site) -> Value | None:
    out = Opaque("parser", "argparser")
    out.items["__defaults__"] = Mapping({})
    return out


def _add_argument(m: Calls, s: Site) -> Value | None:
    parser = s.receiver
    if not isinstance(parser, Opaque):
        return NONE
    defaults = parser.items.setdefault("__defaults__", Mapping({}))
    flags = [a.value for a in s.args if isinstance(a, Lit) and isinstance(a.value, str)]
    if not flags or not isinstance(defaults, Mapping):
        return NONE
    long = next((f for f in flags if f.startswith("--")), flags[0])
    dest = s.kwargs.get("dest")
    name = str(dest.value) if isinstance(dest, Lit) and dest.value else long.lstrip("-").replace("-", "_")
    default = s.kwargs.get("default")
    action = s.kwargs.get("action")
    if isinstance(action, Lit) and isinstance(action.value, str) and action.value.startswith("store_"):
        return NONE
    if isinstance(default, Lit) and default.value is not None and not isinstance(default.value, bool):
        defaults.items[name] = default
    return NONE


def _parse_args(m: Calls, s: Site) -> Value | None:
    out = Opaque("args", "namespace")
    out.path = f"#{m.tick()}"
    if isinstance(s.receiver, Opaque) and "__defaults__" in s.receiver.items:
        out.items["__defaults__"] = s.receiver.items["__defaults__"]
    if s.name == "parse_known_args":
        return Seq([out, Opaque("unparsed")], "tuple")
    return out


def _set_defaults(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Opaque):
        defaults = s.receiver.items.setdefault("__defaults__", Mapping({}))
        if isinstance(defaults, Mapping):
            defaults.items.update({k: v for k, v in s.kwargs.items() if isinstance(v, Lit) and v.value is not None})
    return NONE


def _group(m: Calls, s: Site) -> Value | None:
    return s.receiver


FUNCTIONS: dict[str, Meaning] = {
    "builtins.vars": first_arg,
    "types.SimpleNamespace": _namespace,
    "argparse.Namespace": _namespace,
    "argparse.ArgumentParser": _parser,
    "configargparse.ArgumentParser": _parser,
    "*.EasyDict": _easy_dict,
}

METHODS: dict[tuple[str, str], Meaning] = {
    ("argparser", "add_argument"): _add_argument,
    ("argparser", "parse_args"): _parse_args,
    ("argparser", "parse_known_args"): _parse_args,
    ("argparser", "set_defaults"): _set_defaults,
    ("argparser", "add_argument_group"): _group,
    ("argparser", "add_mutually_exclusive_group"): _group,
}
