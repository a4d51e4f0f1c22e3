"""The known name that an unknown one was probably meant to be, to be proposed in a message.

Which names are known, and what is done with an unknown one, is decided elsewhere.
"""

import re
from collections.abc import Collection
from difflib import get_close_matches

_WORD = re.compile(r"[a-z]+|[0-9]+")
_MOST_CHARACTERS = 200
_MOST_COMPARED = 500
_CLOSE = 0.8


def near_name(name: str, known: Collection[str]) -> str | None:
    """The known name most like another: of the same words, else of nearly the same letters.

    Words in another order (`torch_gemm` of `gemm_torch`) come first, then one word more or less.
    """
    if len(name) > _MOST_CHARACTERS:
        return None
    words = sorted(_WORD.findall(name.lower()))
    by_distance: dict[int, list[str]] = {}
    for other in known:
        if len(other) <= _MOST_CHARACTERS and other != name:
            distance = _distance(words, sorted(_WORD.findall(other.lower())))
            if distance is not None:
                by_distance.setdefault(distance, []).append(other)
    for distance in sorted(by_distance):
        return min(by_distance[distance])
    # Letters are compared with few names: each comparison costs as much as reading a trace.
    if len(known) > _MOST_COMPARED:
        return None
    close = get_close_matches(name, sorted(known), n=1, cutoff=_CLOSE)
    return close[0] if close else None


def _distance(words: list[str], others: list[str]) -> int | None:
    """0 for the same words, 1 for one word more or less; None for anything else."""
    if words == others:
        return 0 if words else None
    short, long = sorted((words, others), key=len)
    if not short or len(long) != len(short) + 1:
        return None
    left = list(long)
    for word in short:
        if word not in left:
            return None
        left.remove(word)
    return 1
