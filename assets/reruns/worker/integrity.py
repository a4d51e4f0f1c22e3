"""Notice what a candidate did to the harness that it shares a process with.

What is watched is found by kind: all that the worker's code is made of and refers to
(`names.py`), what its objects hold (`holders.py`), what can run code uncalled (`hooks.py`), and
here torch's modes and the kernels of its dispatcher. A finding is a suspicion with the thing's
name, never the evidence for a time or an output: whoever owns the process can also answer this.
Needs torch.
"""

import gc
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch.utils._device import DeviceContext

from . import holders, hooks, names

_operator_names = torch._C._dispatch_get_all_op_names
_operator_dump = torch._C._dispatch_dump
_has_fallback = torch._C._dispatch_has_backend_fallback
_freeze, _freeze_count = gc.freeze, gc.get_freeze_count

#: Kernels under these keys make shapes and derivatives, and libraries add to them on their own.
_HARMLESS_KEYS = ("Meta", "FuncTorch", "Functionalize", "CompositeImplicit", "debug")


@dataclass(frozen=True)
class Fingerprint:
    """What was there before a candidate's code was loaded."""

    root: Any
    identities: dict[str, names.Identity]
    operators: dict[str, int]
    fallbacks: frozenset[str]
    caught_signals: int
    active: frozenset[str]
    frozen: int = 0


def learn() -> None:
    """Find out what has to be watched: once, in the process that all others are forked from."""
    names.outside_places()
    _operators_at_first()


def fingerprint(root: Any = None) -> Fingerprint:
    """Take everything down. `root` is the object from which all the worker's can be reached.

    What exists now can no longer be found through the garbage collector.
    """
    hooks.listen()
    gc.collect()
    before = Fingerprint(
        root,
        _identities(root),
        _operators_at_first(),
        _fallbacks(),
        hooks.caught_signals(),
        frozenset(hooks.active()),  # the device's driver may have timers of its own
    )
    _freeze()
    return replace(before, frozen=_freeze_count())


def replaced(before: Fingerprint) -> list[str]:
    """Names of what is another one than in `before`, and of what was left in place since."""
    now = _identities(before.root)
    found = [name for name, own in before.identities.items() if not names.same(own, now.get(name))]
    found += [f"{name} (added)" for name in _additions(before.identities, now)]
    found += holders.foreign(before.root) if before.root is not None else []
    found += [entry for entry in hooks.active() if entry not in before.active]
    found += _signals(before.caught_signals)
    found += _modes()
    operators = _operators()
    found += [f"kernel of {name}" for name, d in before.operators.items() if operators[name] != d]
    found += [f"fallback for {key}" for key in sorted(_fallbacks() - before.fallbacks)]
    if _freeze_count() < before.frozen // 2:
        found.append("objects hidden from the collector were brought back")
    return sorted(found) + hooks.restless_threads()


def _identities(root: Any) -> dict[str, names.Identity]:
    found = names.identities()
    found.update(hooks.handlers())
    found.update(hooks.collector_callbacks())
    if root is not None:
        found.update(holders.held(root))
    return found


def _additions(before: dict[str, names.Identity], now: dict[str, names.Identity]) -> list[str]:
    """What was added to a module or class of the worker's, or to the collector's callbacks.

    Modules that the worker itself loaded later bring names of their own.
    """
    modules = {name for name in before if name.startswith("harness.") and name.count(".") == 1}
    return [
        name
        for name in now
        if name not in before
        and (name.startswith("gc callback") or ".".join(name.split(".")[:2]) in modules)
    ]


def _signals(before: int) -> list[str]:
    added = hooks.caught_signals() & ~before
    numbers = [n + 1 for n in range(64) if added >> n & 1]
    return [f"handler of signal {n}" for n in numbers if hooks.foreign_handler(n)]


def _operators() -> dict[str, int]:
    """A hash of the kernels of every operator of torch's own, those of no concern left out."""
    found = {}
    for name in _operator_names():
        if name.startswith("aten::"):
            lines = _operator_dump(name).splitlines()
            found[name] = hash(tuple(x for x in lines if not x.startswith(_HARMLESS_KEYS)))
    return found


@lru_cache(maxsize=1)
def _operators_at_first() -> dict[str, int]:
    return _operators()


def _fallbacks() -> frozenset[str]:
    keys = torch._C.DispatchKey.__members__
    return frozenset(key for key in keys if _has_fallback_for(key))


def _has_fallback_for(key: str) -> bool:
    try:
        return bool(_has_fallback(key))
    except RuntimeError:  # not every key of the enumeration is one that can have kernels
        return False


def _modes() -> list[str]:
    """Active modes that intercept torch functions, except a plain default device."""
    found = []
    for kind in ("function", "dispatch"):
        length = getattr(torch._C, f"_len_torch_{kind}_stack", None)
        entry = getattr(torch._C, f"_get_{kind}_stack_at", None)
        for index in range(length() if length is not None else 0):
            mode = type(entry(index)) if entry is not None else object
            if mode is not DeviceContext:
                found.append(f"torch {kind} mode {mode.__name__}")
    return found
