"""Rules about one item that need no clock: status, comparison, floor, call convention."""

import math
from collections.abc import Iterator

from assets.reruns.evidence.claims import UNUSABLE, Fault, ItemClaims, SessionClaims
from assets.reruns.result_documents import OutputComparison
from assets.reruns.worker.codes import REASONS, Status
from assets.reruns.worker.convention import infer_convention
from assets.reruns.worker.documents import OutputSpec, solution_of
from assets.reruns.worker.roofline import Roofline, roofline
from assets.reruns.worker.run import SUPPORTED_LANGUAGES
from assets.reruns.worker.tolerance import ToleranceRule, tolerance_rule
from assets.reruns.worker.verdict import STATUS_OF, status_for


def documents_are_those_asked_for(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """The item answers what the job asked, and keeps its log in its own place."""
    asked, outcome = item.item, item.outcome
    for field, expected in (
        ("definition_digest", asked.definition.digest),
        ("workload_digest", asked.workload.digest),
        ("solution_digest", asked.solution.digest),
        ("reproduces", asked.reproduces),
        ("log", f"logs/{asked.item_id}.txt"),
    ):
        found = getattr(outcome, field)
        if found != expected:
            yield Fault(item.at(field), f"is {found!r}; the job asks for {expected!r}")


def status_follows_from_the_reasons(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """A status is what the reasons add up to, and no reason hides among the notes."""
    outcome = item.outcome
    for place, entries, wanted in (
        ("reasons", outcome.reasons, True),
        ("notes", outcome.notes, False),
    ):
        for number, entry in enumerate(entries):
            path = item.at(f"{place}[{number}].code")
            if entry.code not in REASONS:
                yield Fault(path, f"is {entry.code!r}, which no worker says")
            elif (entry.code in STATUS_OF) is not wanted:
                yield Fault(path, f"is {entry.code}, which is no code of {place}")
    codes = [{"code": entry.code} for entry in outcome.reasons]
    expected = status_for(codes)
    if outcome.status is not expected:
        named = ", ".join(entry.code for entry in outcome.reasons) or "no reason"
        yield Fault(
            item.at("status"), f"is {outcome.status.value}; {named} leads to {expected.value}"
        )


def floor_follows_from_the_problem(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """Bytes, operations and floor are those of the definition on the recorded GPU."""
    claimed = item.outcome.roofline
    found = None if claimed is None else (claimed.bytes, claimed.flops, claimed.floor_ns)
    try:
        possible = _floors(session, item)
    except OverflowError:
        yield Fault(item.at("roofline"), "is of a problem too large to have one")
        return
    if found not in possible:
        yield Fault(
            item.at("roofline"),
            f"has bytes, flops and floor_ns {found}; definition and GPU give {possible[-1]}",
        )


def comparison_supports_the_status(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """A passed item has a comparison of every output, within the tolerance that applies."""
    found, passed = item.outcome.correctness, item.outcome.status is Status.PASSED
    if found is None:
        if passed:
            yield Fault(item.at("correctness"), "is null; it passed without a comparison")
        return
    if item.problem is None:
        yield Fault(item.at("correctness"), "compares what the worker cannot compute")
        return
    names = [spec.name for spec in item.problem.outputs]
    if [output.name for output in found.outputs] != names:
        yield Fault(item.at("correctness.outputs"), f"are not those of the definition: {names}")
        return
    for field, worst in (
        ("max_absolute_error", max),
        ("max_relative_error", max),
        ("matched_ratio", min),
    ):
        values = [getattr(output, field) for output in found.outputs]
        if all(map(math.isfinite, values)) and getattr(found, field) != worst(values):
            yield Fault(item.at(f"correctness.{field}"), f"is not the worst of {values}")
    rule = tolerance_rule(item.problem.op_type, item.workload)
    for number, (output, spec) in enumerate(zip(found.outputs, item.problem.outputs, strict=True)):
        path = item.at(f"correctness.outputs[{number}]")
        yield from _tolerance(path, output, spec, rule)
        if passed:
            yield from _within(path, output)


def convention_follows_from_the_source(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """How the entry point was called is what its document and signature say."""
    claimed = item.outcome.call_convention
    expected = None
    if item.problem is not None:
        try:
            solution = solution_of(item.solution)
            if solution.language in SUPPORTED_LANGUAGES:
                expected = infer_convention(
                    solution,
                    [spec.name for spec in item.problem.inputs],
                    [spec.name for spec in item.problem.outputs],
                )
        except UNUSABLE:
            expected = None
    says = claimed and (claimed.style, claimed.arguments, claimed.decided_by)
    gives = expected and (expected.style, expected.arguments, expected.decided_by)
    if says != gives:
        yield Fault(item.at("call_convention"), f"is {says}; the solution gives {gives}")


def _floors(
    session: SessionClaims, item: ItemClaims
) -> list[tuple[int, int | None, int | None] | None]:
    """What the worker may say: an item that it never reached has no floor of the device yet."""
    if item.problem is None:
        return [None]
    l2_bytes = session.environment.device.l2_bytes or 0
    found = [_numbers(roofline(item.problem, session.product, l2_bytes))]
    if not item.measured:
        found.insert(0, _numbers(roofline(item.problem, None, 0)))
    return [*found]


def _numbers(found: Roofline) -> tuple[int, int | None, int | None]:
    return found.bytes, found.flops, found.floor_ns


def _tolerance(
    path: str, output: OutputComparison, spec: OutputSpec, rule: ToleranceRule
) -> Iterator[Fault]:
    found = output.tolerance
    exact = "float" not in spec.dtype
    absolute, relative, ratio = (
        (0.0, 0.0, 1.0) if exact else (rule.absolute, rule.relative, rule.matched_ratio)
    )
    # With spacings the bound grows with the reference's values, which are not kept.
    widened = not exact and rule.spacings > 0 and found.absolute >= absolute
    if (found.relative, found.matched_ratio) != (relative, ratio) or not (
        widened or found.absolute == absolute
    ):
        yield Fault(
            f"{path}.tolerance",
            f"is {found.absolute} and {found.relative}, {found.matched_ratio} of the elements; "
            f"the workload or family gives {absolute} and {relative}, {ratio}",
        )


def _within(path: str, output: OutputComparison) -> Iterator[Fault]:
    if output.matched_ratio < output.tolerance.matched_ratio:
        yield Fault(f"{path}.matched_ratio", f"is {output.matched_ratio}, of a passed item")
    for field in ("nan_output", "nan_reference", "nan_both", "infinity_mismatch"):
        if getattr(output, field):
            yield Fault(f"{path}.{field}", f"is {getattr(output, field)}, of a passed item")
    for field in ("max_absolute_error", "max_relative_error"):
        value = getattr(output, field)
        if not (math.isfinite(value) and value >= 0):
            yield Fault(f"{path}.{field}", f"is {value}, of a passed item")
