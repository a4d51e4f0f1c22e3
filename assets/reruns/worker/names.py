"""What the worker's own code rests on: its modules, and every name outside that they refer to.

Nothing is listed by hand: modules are those of this package in `sys.modules`, and the names outside
are read from their bytecode, so a name is watched exactly when the harness uses it. What
libraries replace for their own ends (torch.compile wraps torch.manual_seed) is of no concern as
long as nothing here calls it. Pure standard library.
"""

import builtins
import dis
import operator
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_NAMES = ("LOAD_NAME", "LOAD_GLOBAL")
_BETWEEN = ("EXTENDED_ARG", "CACHE", "PUSH_NULL", "NOP")  # what may stand inside a chain of names

#: Taken once: what is compared later must not go through something that was replaced meanwhile.
_instructions = dis.get_instructions
_is = operator.is_
#: Objects that stay the same. They are held, so that no other can come to have their address.
Identity = tuple[Any, ...]
_CONSTANTS = (int, float, str, bytes, tuple, frozenset, dict)


@dataclass(frozen=True)
class Place:
    """Where a name that the worker uses is looked up."""

    name: str
    holder: Any
    attribute: str


def identities() -> dict[str, Identity]:
    """Identity of everything that is watched, by a name that a person understands."""
    found: dict[str, Identity] = {}
    for short, module in worker_modules().items():
        found[f"harness.{short}"] = (module, type(module))
        found.update(_own(short, module))
    for place in outside_places():
        value = attribute_of(place.holder, place.attribute)
        if callable(value) or isinstance(value, ModuleType) or hasattr(value, "__get__"):
            found[place.name] = identity(value)  # data, like sys.path or sys.stdout, may change
    return found


def worker_modules() -> dict[str, ModuleType]:
    """The worker's modules that this process has loaded, by their short names."""
    prefix = f"{__package__}."
    return {
        name[len(prefix) :]: module
        for name, module in sorted(sys.modules.items())
        if name.startswith(prefix) and module is not None
    }


def identity(value: Any) -> Identity:
    """What stays the same while a value is the same one and does the same thing."""
    function = _plain_function(value)
    if function is None:
        return (value,)
    cells = function.__closure__ or ()
    return (
        value,
        function.__code__,
        function.__defaults__,
        function.__kwdefaults__,
        *(cell.cell_contents for cell in cells if _is_filled(cell)),
    )


def same(left: Identity | None, right: Identity | None) -> bool:
    """Whether two identities are of one thing that does the same."""
    if left is None or right is None:
        return left is right
    return len(left) == len(right) and all(map(_is, left, right))


@lru_cache(maxsize=1)
def outside_places() -> tuple[Place, ...]:
    """Where the worker's code finds what belongs to other modules, read once from all of it.

    Of a class that it names, every attribute counts whose name the worker's code uses anywhere,
    and every method that Python calls by itself.
    """
    found: dict[str, Place] = {}
    classes: dict[type, str] = {}
    own = {module.__name__ for module in worker_modules().values()}
    used: set[str] = set()
    for module in worker_modules().values():
        for code in _codes(module):
            used |= {i.argval for i in _instructions(code) if i.opname in _ATTRIBUTES}
            for place in _chains(code, module):
                found[place.name] = place
                value = attribute_of(place.holder, place.attribute)
                if isinstance(value, type) and value.__module__ not in own:
                    classes.setdefault(value, place.name)
    for kind, name in classes.items():
        for attribute in _attributes_of(kind, used):
            found[f"{name}.{attribute}"] = Place(f"{name}.{attribute}", kind, attribute)
    return tuple(found.values())


def attribute_of(holder: Any, name: str) -> Any:
    """An attribute as it is stored: binding a class's would make a new object every time."""
    if isinstance(holder, type):
        return next((vars(base)[name] for base in holder.__mro__ if name in vars(base)), None)
    return getattr(holder, name, None)


def _own(short: str, module: ModuleType) -> Iterator[tuple[str, Identity]]:
    """Functions, classes, captured names and methods of one of the worker's modules."""
    yield f"harness.{short}.__builtins__", (vars(module).get("__builtins__"),)
    for name, value in list(vars(module).items()):
        if callable(value) or isinstance(value, (ModuleType, *_CONSTANTS)):
            yield f"harness.{short}.{name}", identity(value)
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield f"harness.{short}.{name} bases", value.__mro__
            for attribute, held in list(vars(value).items()):
                if callable(held) or hasattr(held, "__get__"):
                    yield f"harness.{short}.{name}.{attribute}", identity(held)


def _codes(module: ModuleType) -> Iterator[CodeType]:
    """The code of a module with all that is defined in it, as it was loaded."""
    loader = getattr(module.__spec__, "loader", None)
    if loader is None:
        return
    waiting = [loader.get_code(module.__name__)]
    while waiting:
        code = waiting.pop()
        if code is None:
            continue
        yield code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _chains(code: CodeType, module: ModuleType) -> Iterator[Place]:
    """Names like `torch.cuda.Event` that a code object looks up, each step of them."""
    name, value = "", None
    for instruction in _instructions(code):
        attribute = str(instruction.argval)
        if instruction.opname in _NAMES:
            holder = module if attribute in vars(module) else builtins
            name, value = attribute, getattr(holder, attribute, None)
            # A module's own globals are watched with it, unless they are another's class.
            if holder is builtins or isinstance(value, type):
                yield Place(f"{holder.__name__.rpartition('.')[2]}.{name}", holder, attribute)
        elif instruction.opname in _ATTRIBUTES and isinstance(value, ModuleType):
            if not _is_own(value):
                yield Place(f"{name}.{attribute}", value, attribute)
            name, value = f"{name}.{attribute}", getattr(value, attribute, None)
        elif instruction.opname not in _BETWEEN:
            value = None


def _is_own(module: ModuleType) -> bool:
    """Whether a module is the worker's, which is watched as a whole."""
    return f"{module.__name__}.".startswith(f"{__package__}.")


def _attributes_of(kind: type, used: set[str]) -> list[str]:
    own = {name for base in kind.__mro__[:-1] for name in vars(base)}
    special = {n for n in own if n.startswith("__") and callable(attribute_of(kind, n))}
    return sorted((own & used) | special)


def _plain_function(value: Any) -> FunctionType | None:
    value = getattr(value, "__func__", value) if isinstance(value, _WRAPPERS) else value
    if isinstance(value, property):
        value = value.fget
    return value if isinstance(value, FunctionType) else None


_WRAPPERS = (staticmethod, classmethod)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
