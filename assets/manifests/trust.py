"""How far a result can be relied on, and whether an implementation can be put to use.

Both are derived, never typed by anybody. Rules: KernelIndex v1alpha1.
"""

from dataclasses import dataclass
from typing import Literal

EvidenceLevel = Literal["reported", "reproducible", "verified", "replicated"]
DeployabilityReason = Literal["NO_PUBLIC_SOURCE", "NO_INSTALL_RECIPE", "LICENSE_UNKNOWN"]

_REPLICATIONS_NEEDED = 2


def evidence_level(
    *,
    source_available: bool,
    has_raw_evidence: bool,
    identity_complete: bool,
    reproduced: bool = False,
    replications: int = 0,
) -> EvidenceLevel:
    """The evidence level of a run.

    `reproduced`: a controlled rerun confirmed it. `replications`: how many independent parties
    did. `identity_complete`: implementation, workload, protocol and environment are all known.
    """
    if replications >= _REPLICATIONS_NEEDED:
        return "replicated"
    if reproduced:
        return "verified"
    if source_available and has_raw_evidence and identity_complete:
        return "reproducible"
    return "reported"


@dataclass(frozen=True)
class Deployability:
    """Whether an implementation can be deployed; `reasons` say what is in the way."""

    reasons: tuple[DeployabilityReason, ...]

    @property
    def eligible(self) -> bool:
        """Nothing is in the way."""
        return not self.reasons


def deployability(
    *, source_available: bool, installable: bool, license_concluded: str | None
) -> Deployability:
    """What stands between an implementation and its use."""
    obstacles: tuple[tuple[bool, DeployabilityReason], ...] = (
        (not source_available, "NO_PUBLIC_SOURCE"),
        (not installable, "NO_INSTALL_RECIPE"),
        (license_concluded is None, "LICENSE_UNKNOWN"),
    )
    return Deployability(tuple(reason for in_the_way, reason in obstacles if in_the_way))
