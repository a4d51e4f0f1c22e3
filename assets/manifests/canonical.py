"""Canonical JSON and content digests: the bytes that identity is made of.

RFC 8785 (JSON Canonicalization Scheme) text, SHA-256 over it, and the identity body
`{apiVersion, kind, spec}` of KernelIndex v1alpha1. What goes into a spec is decided elsewhere.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

import msgspec

API_VERSION = "kernelindex.dev/v1alpha1"

# A text that json.dumps wrote is canonical unless one of these could be in it: a number with an
# exponent, an integral float, an integer beyond 2**53; lone surrogates, or characters whose UTF-16
# order is not code point order. A false alarm costs time, never exactness. Numbers are looked for
# where values begin, since hexadecimal digests look like them.
_NUMBER_MAY_DIFFER = re.compile(r"(?:^|\":|[,\[])-?(?:[0-9.]+e|[0-9]+\.0(?![0-9])|[0-9]{16})")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT_MAY_DIFFER = re.compile("[\ud800-\U0010ffff]")
_SAFE_INTEGER = 2**53 - 1

_fast_encode = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
).encode
_encode_number = msgspec.json.Encoder().encode


def canonical_json(value: object) -> str:
    """RFC 8785 text of a JSON value.

    Numbers are IEEE doubles written as ECMAScript writes them; object keys are ordered by UTF-16
    code unit. A lone surrogate, which RFC 8785 forbids, is written as its `\\udXXX` escape, as
    ECMAScript's well-formed JSON.stringify does.

    Raises:
        ValueError: for NaN and infinities, which JSON has no form for.
    """
    text = _fast_encode(value)
    if _NUMBER_MAY_DIFFER.search(text) or not (
        text.isascii() or _TEXT_MAY_DIFFER.search(text) is None
    ):
        return _exact(value)
    return text


def _exact(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return canonical_string(value)
        case int() | float():
            return canonical_number(value)
        case Mapping():
            items = sorted(value.items(), key=lambda item: _utf16(item[0]))
            return (
                "{"
                + ",".join(f"{canonical_string(key)}:{_exact(item)}" for key, item in items)
                + "}"
            )
        case list() | tuple():
            return "[" + ",".join(_exact(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} has no JSON form")


def canonical_string(value: str) -> str:
    """One string with its quotes (RFC 8785, section 3.2.2.2)."""
    text = encode_basestring(value)
    if text.isascii():
        return text
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _utf16(value: str) -> bytes:
    return value.encode("utf-16-be", "surrogatepass")


def canonical_number(value: float) -> str:
    """One number as ECMAScript's Number::toString writes it (RFC 8785, section 3.2.2.3)."""
    if type(value) is float and 1e-4 <= value < 1e15:
        # These are written without an exponent, as ECMAScript does; almost all are such. It takes
        # msgspec a fifth of the time of `repr`.
        return _encode_number(value).decode().removesuffix(".0")
    if isinstance(value, int) and abs(value) <= _SAFE_INTEGER:
        return str(value)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} has no JSON form")
    if number == 0:
        return "0"
    text = repr(number)
    if "e" not in text and not text.endswith(".0"):
        return text
    sign = "-" if number < 0 else ""
    mantissa, _, exponent_text = text.lstrip("-").partition("e")
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
