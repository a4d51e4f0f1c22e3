"""Which rules hold for the results of which protocol; here a later version lists its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assets.reruns.evidence import item_rules, sample_rules, session_rules, timing_rules
from assets.reruns.evidence.claims import Fault, ItemRule, SessionClaims, SessionRule
from assets.reruns.worker.job import PROTOCOL_NAME


@dataclass(frozen=True)
class Rules:
    """Rules in the order in which they are asked: what is cheap and names the cause comes first."""

    of_session: tuple[SessionRule, ...]
    of_item: tuple[ItemRule, ...]


RULES_OF: Mapping[str, Rules] = {
    PROTOCOL_NAME: Rules(
        of_session=(
            session_rules.device_is_one,
            session_rules.state_goes_with_the_items,
            session_rules.calibration_follows_from_its_figures,
            session_rules.promise_follows_from_the_session,
            sample_rules.references_are_shared,
            session_rules.traces_say_the_same,
        ),
        of_item=(
            item_rules.documents_are_those_asked_for,
            item_rules.status_follows_from_the_reasons,
            item_rules.comparison_supports_the_status,
            item_rules.floor_follows_from_the_problem,
            item_rules.convention_follows_from_the_source,
            sample_rules.calls_are_those_of_the_protocol,
            sample_rules.contents_change_with_every_call,
            timing_rules.statistics_follow_from_the_samples,
            timing_rules.speedup_follows_from_the_medians,
            timing_rules.clocks_are_judged_as_they_stand,
        ),
    )
}


def faults(session: SessionClaims) -> Iterator[Fault]:
    """Every claim of a result that does not follow from what it brings; none of a true one."""
    name = session.result.protocol.get("name")
    rules = RULES_OF.get(str(name))
    if rules is None:
        yield Fault("protocol.name", f"is {name!r}; this version can check {', '.join(RULES_OF)}")
        return
    for item in session.items:
        for rule in rules.of_item:
            yield from rule(session, item)
    for session_rule in rules.of_session:
        yield from session_rule(session)
