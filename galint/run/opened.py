"""What an open context is about: the models of an `accumulate`, the wrapper of a `no_sync`."""

from __future__ import annotations

from galint.run.values import Context, Lit, Module, Opaque, Seq, Value


def models_of(accumulate: Context) -> list[Value]:
    """The models that an `accumulate` was given; a list of them has no `no_sync`."""
    return [m for m in accumulate.data.get("models", ()) if not isinstance(m, Seq)]


def held(accumulate: Context) -> bool:
    """Whether an open `accumulate` lets no step through."""
    sync = accumulate.target.attrs.get("sync_gradients") if isinstance(accumulate.target, Opaque) else None
    return isinstance(sync, Lit) and not sync.value


def same_module(target: Value, module: Module) -> bool:
    """Whether a `no_sync` of `target` is one of `module`: what is not known to be a wrapper hands the call on to one."""
    if not isinstance(target, Module) or not target.wrap or "__guessed__" in target.items:
        return True
    return target is module or target.inner is module or module.inner is target
