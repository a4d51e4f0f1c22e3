"""Axis expressions and shape dimensions.

The grammar is the public index's: integers, axis names, `+ - *`, floor division `//`, `%` and
parentheses. Unlike there, a character that the grammar does not know is an error and not
skipped, and a division by zero is an error and not an infinity.
"""

import re
from collections.abc import Collection, Mapping

_TOKEN = re.compile(r"\s*(?:(\d+)|([a-z_][a-z0-9_]*)|(//|[-+*/%()]))", re.ASCII)
_MAX_LENGTH = 200
MAX_SAFE_INTEGER = 2**53 - 1


class ExpressionError(ValueError):
    """An axis expression that has no integer value."""


def _tokens(expression: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    text = expression.rstrip()
    if len(text) > _MAX_LENGTH:
        raise ExpressionError(f"{text[:40]!r}… has more than {_MAX_LENGTH} characters")
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"unexpected {text[position:].lstrip()[:1]!r} in {expression!r}")
        tokens.append(match[match.lastindex or 0])
        position = match.end()
    return tokens


class _Parser:
    def __init__(self, expression: str, bindings: Mapping[str, int], exact_division: bool) -> None:
        self._expression = expression
        self._bindings = bindings
        self._exact_division = exact_division
        self._tokens = _tokens(expression)
        self._position = 0

    def value(self) -> int:
        result = self._sum()
        if self._position != len(self._tokens):
            raise ExpressionError(f"trailing {self._peek()!r} in {self._expression!r}")
        if abs(result) > MAX_SAFE_INTEGER:
            raise ExpressionError(f"{self._expression!r} is beyond 2**53")
        return result

    def _peek(self) -> str | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _next(self) -> str:
        token = self._peek()
        if token is None:
            raise ExpressionError(f"unexpected end of {self._expression!r}")
        self._position += 1
        return token

    def _sum(self) -> int:
        value = self._product()
        while self._peek() in ("+", "-"):
            value = value + self._product() if self._next() == "+" else value - self._product()
        return value

    def _product(self) -> int:
        value = self._factor()
        while self._peek() in ("*", "//", "%", "/"):
            value = self._apply(self._next(), value, self._factor())
        return value

    def _apply(self, operator: str, left: int, right: int) -> int:
        if operator == "*":
            return left * right
        if right == 0:
            raise ExpressionError(f"division by zero in {self._expression!r}")
        if operator == "//":
            return left // right
        remainder = abs(left) % abs(right)
        if operator == "%":
            # The sign of the dividend, as in ECMAScript.
            return remainder if left >= 0 else -remainder
        if not self._exact_division or remainder:
            raise ExpressionError(f"{self._expression!r} has no integer value: use //")
        return left // right

    def _factor(self) -> int:
        token = self._next()
        if token == "(":
            value = self._sum()
            if self._peek() != ")":
                raise ExpressionError(f"missing ')' in {self._expression!r}")
            self._next()
            return value
        if token.isdigit():
            return int(token)
        if token in self._bindings:
            return self._bindings[token]
        if token[0].isalpha() or token[0] == "_":
            raise ExpressionError(f"unbound axis {token!r} in {self._expression!r}")
        raise ExpressionError(f"unexpected {token!r} in {self._expression!r}")


def evaluate(expression: str, bindings: Mapping[str, int], *, exact_division: bool = False) -> int:
    """The integer value of an expression over bound axes.

    `exact_division` also allows `/` where it leaves no remainder, as shape expressions use it.

    Raises:
        ExpressionError: unknown characters, unbound axes, division by zero, values beyond 2**53.
    """
    return _Parser(expression, bindings, exact_division).value()


def dimension(
    raw: str | int, constants: Mapping[str, int], declared: Collection[str] = ()
) -> str | int:
    """One entry of a shape: an integer, or the name of an axis.

    `constants` are the constant axes (lower-case names), `declared` all axes. A digit string is an
    integer; an expression over constant axes is its value.

    Raises:
        ExpressionError: an expression that needs a variable axis, or is none.
    """
    if isinstance(raw, int):
        return raw
    name = raw.lower()
    if re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return name
    if raw != raw.strip():
        raise ExpressionError(f"{raw!r} begins or ends with a blank")
    for token in _tokens(name):
        if token in declared and token not in constants:
            raise ExpressionError(
                f"axis {token!r} has another value in each workload, and an expression in a shape "
                f"may use constant axes only; declare an axis of type expr for {raw!r}"
            )
    return evaluate(name, constants, exact_division=True)
