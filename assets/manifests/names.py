"""How upstream names become KernelIndex names: tables first, then the rules that use them.

Every mapping that decides identity or a corrected column stands here and nowhere else.
Expected values: the golden vectors of the public index, and vendor documents for the
architecture table.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

_Value = TypeVar("_Value")

#: What the harness of all published traces is called.
SOURCE = "flashinfer-bench"

# Public index, its dtype table (v1alpha1). What is not in it is lower-cased to a token.
DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "double": "fp64",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e4m3": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "nvfp4": "nvfp4",
    "float4_e2m1": "fp4_e2m1",
}

# Public index, its language table.
LANGUAGES = {"cuda_cpp": "cuda"}

# Public index, trace statuses (FlashInfer-Bench and SOL-ExecBench) to run statuses.
STATUSES = {
    "PASSED": "passed",
    "INCORRECT_SHAPE": "incorrect_shape",
    "INCORRECT_NUMERICAL": "incorrect_numerical",
    "INCORRECT_DTYPE": "incorrect_dtype",
    "RUNTIME_ERROR": "runtime_error",
    "COMPILE_ERROR": "compile_error",
    "TIMEOUT": "timeout",
    "REWARD_HACK": "suspected_reward_hack",
    "INVALID_REFERENCE": "invalid_reference",
}


@dataclass(frozen=True)
class Hardware:
    """A device as an ExecutionEnvironment names it."""

    vendor: str
    product: str
    architecture: str


# Public index, its hardware table: only these spellings have an architecture there.
PUBLISHED_HARDWARE = {
    "B200": Hardware("nvidia", "NVIDIA B200", "sm_100"),
    "NVIDIA_B200": Hardware("nvidia", "NVIDIA B200", "sm_100"),
    "GB200": Hardware("nvidia", "NVIDIA GB200", "sm_100"),
    "H200": Hardware("nvidia", "NVIDIA H200", "sm_90"),
    "H100": Hardware("nvidia", "NVIDIA H100", "sm_90"),
    "NVIDIA_H100": Hardware("nvidia", "NVIDIA H100", "sm_90"),
    "A100": Hardware("nvidia", "NVIDIA A100", "sm_80"),
}

# Corrected columns: the first pattern found in the product name decides. NVIDIA: compute
# capabilities from the CUDA GPU list; AMD: gfx targets from the ROCm hardware list; Intel: the
# Xe generation names of its oneAPI device list.
ARCHITECTURES = tuple(
    (re.compile(pattern, re.IGNORECASE), vendor, architecture)
    for pattern, vendor, architecture in (
        (r"\bG?B300\b", "nvidia", "sm_103"),
        (r"\bG?B(200|100)\b", "nvidia", "sm_100"),
        (r"\bRTX\s*(PRO\s*\d{4}.*Blackwell|50\d0)", "nvidia", "sm_120"),
        (r"\b(GH200|H200|H100|H800|H20)\b", "nvidia", "sm_90"),
        (r"\b(L40S?|L4|L20|RTX\s*40\d0|RTX\s*6000\s*Ada)\b", "nvidia", "sm_89"),
        (r"\b(A100|A800|A30)\b", "nvidia", "sm_80"),
        (r"\b(A40|A10G?|A16|A2|RTX\s*30\d0|RTX\s*A\d{4})\b", "nvidia", "sm_86"),
        (r"\b(T4|RTX\s*20\d0|TITAN\s*RTX)\b", "nvidia", "sm_75"),
        (r"\bV100\b", "nvidia", "sm_70"),
        (r"\bMI35[05]X?\b", "amd", "gfx950"),
        (r"\bMI3(00|08|25)[AX]?\b", "amd", "gfx942"),
        (r"\bMI2[15]0X?\b", "amd", "gfx90a"),
        (r"\bMI100\b", "amd", "gfx908"),
        (r"\bArc\b.*\bB\d{3}\b", "intel", "xe2"),
        (r"\bArc\b.*\bA\d{3}\b", "intel", "xe_hpg"),
        (r"\b(Data Center GPU Max|Ponte Vecchio)\b", "intel", "xe_hpc"),
    )
)
VENDORS = tuple(
    (re.compile(pattern, re.IGNORECASE), vendor)
    for pattern, vendor in (
        (r"\b(AMD|Radeon|Instinct)\b", "amd"),
        (r"\bIntel\b|\bxpu\b", "intel"),
        (r"\b(NVIDIA|GeForce|Tesla|Quadro|CUDA)\b", "nvidia"),
        (r"\bApple\b", "apple"),
    )
)

# Tags of the SOL-ExecBench subsets are import bookkeeping, not taxonomy (public index).
_SUBSET_TAGS = frozenset({"L1", "L2", "Quant", "FlashInfer-Bench"})

TOKEN = re.compile(r"[a-z][a-z0-9_]*\Z")
_NOT_TOKEN = re.compile(r"[^a-z0-9_]")


@lru_cache(maxsize=65536)
def kebab(value: str) -> str:
    """Lower-case words of a-z and 0-9 joined by single dashes, at most 100 characters."""
    return re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")[:100]


def _utf16_tokenize(value: str) -> str:
    # ECMAScript replaces UTF-16 code units, so a character beyond the BMP becomes two marks.
    lowered = value.lower()
    return _NOT_TOKEN.sub(lambda match: "_" if ord(match[0]) <= 0xFFFF else "__", lowered)


def map_dtype(dtype: str) -> str:
    """The dtype token, e.g. `bfloat16` -> `bf16`; unknown names become lower-case tokens."""
    return DTYPES.get(dtype) or _utf16_tokenize(dtype)


def map_language(language: str) -> str:
    """The language token; also used for library names of an environment."""
    return LANGUAGES.get(language) or _utf16_tokenize(language)


def map_hardware(name: str) -> Hardware:
    """The device as the public index publishes it, which is what identity needs."""
    return PUBLISHED_HARDWARE.get(name) or Hardware("nvidia", name.replace("_", " "), "unknown")


def actual_hardware(name: str) -> Hardware:
    """The device with vendor and architecture as they really are; `unknown` where we do not know.

    The published manifest stays as it is; this fills the corrected columns beside it.
    """
    product = map_hardware(name).product
    for pattern, vendor, architecture in ARCHITECTURES:
        if pattern.search(product):
            return Hardware(vendor, product, architecture)
    for pattern, vendor in VENDORS:
        if pattern.search(product):
            return Hardware(vendor, product, "unknown")
    return Hardware("unknown", product, "unknown")


def argument_name(name: str) -> str:
    """The argument token, e.g. `Weight Scale` -> `weight_scale`, `1x` -> `x_1x`."""
    lowered = _utf16_tokenize(name)
    return lowered if lowered[:1].isalpha() else f"x_{lowered}"


def axis_name(name: str) -> str:
    """Axis names are only lower-cased; whether the result is a token is checked later."""
    return name.lower()


def family_of(op_type: str | None, tags: Iterable[str]) -> str:
    """The operation family: the operation type, else the first taxonomy tag."""
    if op_type:
        return kebab(op_type)
    for tag in tags:
        if tag not in _SUBSET_TAGS and not tag.startswith("model:"):
            return kebab(tag)
    return "uncategorized"


def taxonomy_tags(tags: Iterable[str]) -> list[str]:
    """Editorial tags in document order without repeats; `model:` tags keep their prefix."""
    return list(
        dict.fromkeys(
            f"model:{kebab(tag[6:])}" if tag.startswith("model:") else kebab(tag)
            for tag in tags
            if tag not in _SUBSET_TAGS
        )
    )


def document_order(mapping: dict[str, _Value]) -> list[tuple[str, _Value]]:
    """Entries in the order in which ECMAScript walks an object: array indices first, ascending."""
    indices = [name for name in mapping if _is_array_index(name)]
    if not indices:
        return list(mapping.items())
    ordered = sorted(indices, key=int) + [name for name in mapping if not _is_array_index(name)]
    return [(name, mapping[name]) for name in ordered]


def _is_array_index(name: str) -> bool:
    # The largest array index has ten digits.
    digits = len(name) <= 10 and name.isascii() and name.isdigit()
    return digits and str(int(name)) == name and int(name) < 2**32 - 1


# Root collation order of the characters that axis names are made of (CLDR root, as ECMAScript's
# localeCompare gives it): punctuation, digits, letters, lower case before upper case.
_COLLATION = {
    character: weight
    for weight, character in enumerate(
        " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
    )
}


def collation_key(text: str) -> tuple[Any, ...]:
    """Sort key by which the public index orders axis names before it hashes a case without uuid.

    Three levels, as in the Unicode collation algorithm: base characters, accents, case.
    """
    primary: list[int] = []
    secondary: list[tuple[int, ...]] = []
    tertiary: list[bool] = []
    for character in unicodedata.normalize("NFD", text):
        if unicodedata.combining(character) and primary:
            secondary[-1] = (*secondary[-1], ord(character))
            continue
        base = character.lower()
        primary.append(_COLLATION.get(base, len(_COLLATION) + ord(base[0])))
        secondary.append(())
        tertiary.append(base != character)
    return primary, secondary, tertiary, text
