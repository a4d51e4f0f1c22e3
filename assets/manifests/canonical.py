"""Canonical JSON and content digests: the bytes that identity is made of.

RFC 8785 (JSON Canonicalization Scheme) text, SHA-256 over it, and the identity body
`{apiVersion, kind, spec}` of KernelIndex v1alpha1. What goes into a spec is decided elsewhere.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any, cast

API_VERSION = "kernelindex.dev/v1alpha1"

_SAFE_INTEGER = 2**53 - 1


def canonical_json(value: object) -> str:
    """RFC 8785 text of a JSON value.

    Numbers are IEEE doubles written as ECMAScript writes them; object keys are ordered by UTF-16
    code unit. A lone surrogate, which RFC 8785 forbids, is written as its `\\udXXX` escape, as
    ECMAScript's well-formed JSON.stringify does.

    Raises:
        ValueError: for NaN and infinities, which JSON has no form for.
        TypeError: for what is no JSON value.
    """
    if isinstance(value, str):
        return _string(value)
    text = _text(value, sorted)
    # The order of code points is the order of code units unless a character is beyond ASCII.
    return text if text.isascii() else _text(value, _by_code_unit)


def _text(value: object, ordered: Callable[[Iterable[str]], list[str]]) -> str:
    # Told apart by exact type, commonest first: this runs twenty times for every run.
    kind = type(value)
    if kind is str:
        return _string(cast("str", value))
    if kind is dict:
        mapping = cast("dict[str, object]", value)
        return (
            "{"
            + ",".join(
                [f"{_string(key)}:{_text(mapping[key], ordered)}" for key in ordered(mapping)]
            )
            + "}"
        )
    if kind is float or kind is int:
        return canonical_number(cast("float", value))
    if kind is list or kind is tuple:
        return "[" + ",".join([_text(item, ordered) for item in cast("list[object]", value)]) + "]"
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    raise TypeError(f"{kind.__name__} has no JSON form")


def _string(value: str) -> str:
    text: str = encode_basestring(value)
    if not _has_surrogate(text):
        return text
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _by_code_unit(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=_utf16)


def _utf16(value: str) -> bytes:
    return value.encode("utf-16-be", "surrogatepass")


def canonical_number(value: float) -> str:
    """One number as ECMAScript's Number::toString writes it (RFC 8785, section 3.2.2.3)."""
    if isinstance(value, int) and abs(value) <= _SAFE_INTEGER:
        return str(value)
    number = float(value)
    if number == 0:
        return "0"
    text = repr(number)
    if "e" not in text:
        if not math.isfinite(number):
            raise ValueError(f"{number} has no JSON form")
        # Python and ECMAScript agree on the digits; they differ in how exponents are written.
        return text.removesuffix(".0")
    sign = "-" if number < 0 else ""
    mantissa, _, exponent_text = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The decimal point stands after `point` of the significant digits.
    point = len(whole) + int(exponent_text or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exponent = point - 1
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


def sha256_digest(data: str | bytes) -> str:
    """`sha256:<hex>` of bytes, or of the UTF-8 of a text (a lone surrogate becomes U+FFFD)."""
    if isinstance(data, str):
        data = utf8(data)
    return "sha256:" + hashlib.sha256(data).hexdigest()


def utf8(text: str) -> bytes:
    """UTF-8 of a text; a lone surrogate becomes U+FFFD, as ECMAScript encodes it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, so that a pair written as two escapes is one character again.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def identity_json(kind: str, spec: Mapping[str, Any]) -> str:
    """Canonical JSON of the identity body; metadata is editorial and not in it."""
    return f'{{"apiVersion":"{API_VERSION}","kind":"{kind}","spec":{canonical_json(spec)}}}'


def identity_digest(kind: str, spec: Mapping[str, Any]) -> str:
    """The digest by which a manifest is known."""
    return sha256_digest(identity_json(kind, spec))
