"""Canonical JSON against a slow oracle that shares no code with it."""

import json
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assets.manifests.canonical import (
    canonical_json,
    canonical_number,
    identity_digest,
    identity_json,
    sha256_digest,
    utf8,
)

texts = st.text(st.characters(codec=None, categories=None, exclude_categories=()), max_size=8)
numbers = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([0.0, -0.0, 1e21, 1e-7, 123e18, 5e-324, 1e16, 2.0**53, 1e15, 0.1, 100.0])
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def _oracle(value: object) -> str:
    """RFC 8785 word by word."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return _oracle_number(float(value))
    if isinstance(value, str):
        return '"' + "".join(map(_oracle_character, value)) + '"'
    if isinstance(value, dict):
        ordered = sorted(value, key=_code_units)
        return "{" + ",".join(f"{_oracle(name)}:{_oracle(value[name])}" for name in ordered) + "}"
    assert isinstance(value, list)
    return "[" + ",".join(map(_oracle, value)) + "]"


def _code_units(text: str) -> list[int]:
    units = []
    for character in text:
        point = ord(character)
        if point > 0xFFFF:
            point -= 0x10000
            units += [0xD800 + (point >> 10), 0xDC00 + (point & 0x3FF)]
        else:
            units.append(point)
    return units


def _oracle_character(character: str) -> str:
    short = {
        "\b": r"\b",
        "\t": r"\t",
        "\n": r"\n",
        "\f": r"\f",
        "\r": r"\r",
        '"': r"\"",
        "\\": r"\\",
    }
    if character in short:
        return short[character]
    point = ord(character)
    return f"\\u{point:04x}" if point < 0x20 or 0xD800 <= point <= 0xDFFF else character


def _shortest(number: float) -> Decimal:
    """Of the decimals with the fewest digits that read back as the number, the nearest.

    Of two that are equally near, the one whose last digit is even.
    """
    exact = Decimal(number)
    with localcontext() as context:
        context.prec = 1100
        for places in range(18):
            step = Decimal(1).scaleb(exact.adjusted() - places)
            near = [exact.quantize(step, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING)]
            if found := [decimal for decimal in near if float(decimal) == number]:
                return min(found, key=lambda d: (abs(d - exact), d.as_tuple().digits[-1] % 2))
    raise AssertionError(number)


def _oracle_number(number: float) -> str:
    """ECMAScript Number::toString: the fewest digits that read back as the same double."""
    if number == 0:
        return "0"
    if number < 0:
        return "-" + _oracle_number(-number)
    _, digit_tuple, exponent = _shortest(number).as_tuple()
    digits = "".join(map(str, digit_tuple)).rstrip("0")
    assert isinstance(exponent, int)
    n = len(digit_tuple) + exponent
    k = len(digits)
    if k <= n <= 21:
        return digits + "0" * (n - k)
    if 0 < n <= 21:
        return digits[:n] + "." + digits[n:]
    if -6 < n <= 0:
        return "0." + "0" * -n + digits
    sign = "+" if n - 1 > 0 else "-"
    mantissa = digits if k == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{sign}{abs(n - 1)}"


@given(values)
@example({"a": 1e-05, "b": 1e16, "c": 1.0, "d": 12345678901234567})
@example([2.0**-24, 70368744177664.375])
@example(["\ud800", "\U0001f600\ufb33", "\u2028\x7f"])
def test_canonical_json_is_what_the_oracle_writes(value: object) -> None:
    assert canonical_json(value) == _oracle(value)


@given(st.floats(1e-4, 1e15) | st.floats(allow_nan=False, allow_infinity=False))
@example(70368744177664.375)
@example(1e-4)
@example(999999999999999.9)
def test_a_canonical_number_is_what_the_oracle_writes(number: float) -> None:
    assert canonical_number(number) == _oracle_number(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_canonical_number_reads_back_as_itself(number: float) -> None:
    assert float(canonical_number(number)) == number


@given(values)
def test_canonical_json_is_a_fixed_point(value: object) -> None:
    text = canonical_json(value)
    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(texts, numbers, max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, float]) -> None:
    backwards = dict(reversed(value.items()))
    assert canonical_json(backwards) == canonical_json(value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_without_a_json_form_are_an_error(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": number})


@given(texts)
def test_utf8_replaces_only_lone_surrogates(text: str) -> None:
    pairs_joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert utf8(text).decode() == pairs_joined
    assert sha256_digest(text) == sha256_digest(utf8(text))


def test_metadata_is_no_part_of_identity() -> None:
    text = identity_json("Kind", {"b": 1, "a": 2.0})
    assert text == '{"apiVersion":"kernelindex.dev/v1alpha1","kind":"Kind","spec":{"a":2,"b":1}}'
    assert identity_digest("Kind", {"b": 1, "a": 2}) == sha256_digest(text)
