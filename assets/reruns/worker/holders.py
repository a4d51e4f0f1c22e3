"""The worker's own objects in a process: what each of them holds, and what it must not hold.

A class that nobody touched is of no use when an object of it has its own `call`. Walks from one
root through everything that objects of the worker's classes hold. Pure standard library.
"""

import gc
import sys
import weakref
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from .names import Identity, attribute_of, identity

_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, type)
_CONTAINERS = (list, tuple, dict)
_MOST, _FEW = 20_000, 100
#: The one place where a function of the solution belongs.
_ENTRY_POINT = "_entry_point"

_get_referents = gc.get_referents
_weak_references = weakref.getweakrefs


def held(root: Any) -> dict[str, Identity]:
    """Identity of every function, class and object of the worker's that its objects hold."""
    found: dict[str, Identity] = {}
    for place, holder in _objects(root):
        found[f"{place} type"] = (type(holder),)
        for name, value in _parts(holder):
            if isinstance(value, _FUNCTIONS) and name != _ENTRY_POINT:
                found[f"{place}.{name}"] = _bound_identity(value)
            elif is_worker_object(value):
                found[f"{place}.{name}"] = (value,)
    return found


def foreign(root: Any) -> list[str]:
    """What the worker's objects hold that none of them put there: places, each with a reason."""
    found = []
    for place, holder in _objects(root):
        for name, value in _parts(holder):
            where = f"{place}.{name}"
            kind = attribute_of(type(holder), name)
            if isinstance(kind, (FunctionType, property)):
                found.append(f"{where} hides a method")
            elif name != _ENTRY_POINT and _is_strangers(value):
                found.append(f"{where} is a {type(value).__name__} from {_home(value)}")
        if any(reference.__callback__ is not None for reference in _weak_references(holder)):
            found.append(f"{place} is watched by a weak reference")
    return found


def attributes(holder: Any) -> dict[str, Any]:
    """An object's own attributes, by dictionary or by slots."""
    found = dict(getattr(holder, "__dict__", {}))
    for base in type(holder).__mro__:
        for name in getattr(base, "__slots__", ()):
            if hasattr(holder, name):
                found[name] = getattr(holder, name)
    return found


def _parts(holder: Any) -> Iterator[tuple[str, Any]]:
    """An object's own attributes, and what lies in those that are containers."""
    for name, value in attributes(holder).items():
        yield name, value
        if isinstance(value, dict):
            yield from [(f"{name}[{key!r}]", item) for key, item in list(value.items())[:_FEW]]
        elif isinstance(value, (list, tuple)):
            yield from [(f"{name}[{n}]", item) for n, item in enumerate(value[:_FEW])]


def is_worker_object(value: Any) -> bool:
    """Whether a value is an object of one of the worker's classes."""
    return not isinstance(value, type) and _is_worker_name(type(value).__module__)


def _objects(root: Any) -> Iterator[tuple[str, Any]]:
    """The worker's objects that can be reached from the root, each with the way to it."""
    waiting: list[tuple[str, Any]] = [(type(root).__name__, root)]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        place, value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, MethodType):
            waiting.append((place, value.__self__))
        elif isinstance(value, _CONTAINERS):
            items = value.values() if isinstance(value, dict) else value
            waiting += [(place, item) for item in list(items)[:_FEW]]
        elif is_worker_object(value):
            yield place, value
            name = type(value).__name__
            waiting += [(f"{name}.{key}", item) for key, item in attributes(value).items()]


def _bound_identity(value: Any) -> Identity:
    if isinstance(value, MethodType):
        return (value.__self__, *identity(value.__func__))
    return identity(value)


def _is_strangers(value: Any) -> bool:
    """Whether a value is a function, or of a class, that no installed module defines."""
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        module = sys.modules.get(value.__module__ or "")
        return not _is_worker_name(value.__module__) and not _is_installed(module)
    kind = value if isinstance(value, type) else type(value)
    if _is_worker_name(kind.__module__):
        return False
    module = sys.modules.get(kind.__module__)
    return not _is_installed(module)


def _home(value: Any) -> str:
    named = value if isinstance(value, (FunctionType, type)) else type(value)
    return str(getattr(named, "__module__", "nowhere"))


def _is_worker_name(module: str | None) -> bool:
    return (f"{module}.").startswith(f"{__package__}.")


def _is_installed(module: Any) -> bool:
    """Whether a module came with the interpreter or its libraries, not with the solution."""
    if module is None:
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ in sys.builtin_module_names or module.__name__ in sys.modules
    return any(str(file).startswith(place) for place in _PLACES)


#: Where modules lay that were importable before any code of a solution was.
_PLACES = tuple({sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix})
