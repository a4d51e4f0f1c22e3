"""A request for reruns, typed: what is to be measured again, where, how long, and why.

Only the words of a request; `selection.py` finds the runs that they mean.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from assets.reruns.launchers.settings import LauncherKind

MAX_ITEMS = 1000

Name = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunsSelection(_Part):
    """Published runs, by digest or unique beginning of one."""

    kind: Literal["runs"] = "runs"
    runs: tuple[Name, ...] = Field(min_length=1)


class GroupSelection(_Part):
    """Every implementation that passed in one comparison group, by its fastest run there."""

    kind: Literal["group"] = "group"
    comparison_key: Name


class SolutionsSelection(_Part):
    """Solutions of one operation on one or all workloads that they were published with.

    `workload` is an identifier, a digest or the beginning of either; None stands for all.
    """

    kind: Literal["solutions"] = "solutions"
    operation: Name
    solutions: tuple[Name, ...] = Field(min_length=1)
    workload: Name | None = None


class TopSelection(_Part):
    """The first `top` solutions of an operation's leaderboard, on their newest passed runs."""

    kind: Literal["top"] = "top"
    operation: Name
    top: int = Field(default=3, ge=1, le=100)
    workloads_per_solution: int = Field(default=3, ge=1, le=1000)


Selection = Annotated[
    RunsSelection | GroupSelection | SolutionsSelection | TopSelection,
    Field(discriminator="kind"),
]


class RerunRequest(_Part):
    """What a person asked for; `reason` has no default, so nothing is launched without one."""

    selection: Selection
    reason: Annotated[str, StringConstraints(min_length=3, max_length=500, strip_whitespace=True)]
    launcher: LauncherKind | None = Field(
        default=None, description="Where it runs; the configured one when empty."
    )
    gpu: str | None = Field(
        default="0", pattern=r"^(cpu|[0-9]+)$", description="GPU index; cpu is for trials only."
    )
    samples: int = Field(default=200, ge=20, le=100_000)
    deadline_s: float = Field(default=3600.0, gt=0, le=7 * 24 * 3600.0)
    per_item_timeout_s: float = Field(default=300.0, gt=0)
