"""How far an output may be from the reference, and where that bound comes from.

A workload's own tolerance comes first; else the family's. Pure standard library.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Families whose outputs are random draws: comparing elements says nothing.
NOT_COMPARABLE = frozenset({"sampling", "multinomial"})


@dataclass(frozen=True)
class ToleranceRule:
    """`|output - reference| <= absolute + relative * |reference|` for a share of the elements.

    `spacings` widens `absolute` to that many spacings of the output's data type at the root mean
    square of the reference: two right ways to sum differ by that much near zero.
    """

    absolute: float
    relative: float
    matched_ratio: float
    spacings: float
    source: str


#: Sources: FlashInfer-Bench's default evaluator (absolute and relative 1e-2), and its low-bit
#: setting for block-scaled mixture-of-experts kernels (1, 0.3, 90% of the elements).
DEFAULT = ToleranceRule(1e-2, 1e-2, 1.0, 0.0, "default")
FAMILIES = {
    "gemm": ToleranceRule(1e-2, 1e-2, 1.0, 2.0, "family gemm"),
    "moe": ToleranceRule(1.0, 0.3, 0.9, 0.0, "family moe"),
}

_ABSOLUTE = ("max_atol", "atol", "absolute")
_RELATIVE = ("max_rtol", "rtol", "relative")
_RATIO = ("required_matched_ratio", "matched_ratio")


def tolerance_rule(op_type: str, workload: Mapping[str, Any]) -> ToleranceRule:
    """The rule for an operation family and a workload (or workload row)."""
    inner = workload.get("workload", workload)
    own = inner.get("tolerance") if isinstance(inner, Mapping) else None
    family = FAMILIES.get(op_type.split("_")[0], DEFAULT)
    if not isinstance(own, Mapping):
        return family
    return ToleranceRule(
        absolute=_number(own, _ABSOLUTE, family.absolute),
        relative=_number(own, _RELATIVE, family.relative),
        matched_ratio=_number(own, _RATIO, family.matched_ratio),
        spacings=0.0,
        source="workload",
    )


def _number(values: Mapping[str, Any], names: tuple[str, ...], default: float) -> float:
    for name in names:
        value = values.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return default
