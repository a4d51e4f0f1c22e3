"""Rules about the raw samples themselves: which calls there must be, and whose they are."""

from collections.abc import Iterator

from assets.reruns.evidence.claims import Fault, ItemClaims, SessionClaims
from assets.reruns.result_documents import Sample
from assets.reruns.worker.session import LEAST_SAMPLES
from assets.reruns.worker.statistics import share

SAMPLES = "samples.jsonl"
_LEAST = {
    ("candidate", "device"): LEAST_SAMPLES,
    ("candidate", "wall"): 3,
    ("reference", "device"): 3,
    ("reference", "wall"): 3,
}


def calls_are_those_of_the_protocol(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """As many calls as were asked for, each in its round; fewer only where that is noted."""
    protocol = session.bundle.protocol
    noted = any(note.code == "FEWER_SAMPLES" for note in item.outcome.notes)
    for (subject, mode), least in _LEAST.items():
        found = item.of(subject, mode)
        asked = protocol.samples if mode == "device" else protocol.wall_samples
        yield from _well_formed(item, found, mode, asked, protocol.rounds)
        if not item.measured:
            continue
        exact = subject == "candidate" and not noted
        if len(found) > asked or len(found) < (asked if exact else min(least, asked)):
            yield _fault(item, subject, mode, f"{len(found)} calls; the job asks for {asked}")
        expected = [
            (number, index)
            for number in range(protocol.rounds)
            for index in share(len(found), protocol.rounds, number)
        ]
        if [(sample.round, sample.index) for sample in found] != expected:
            yield _fault(item, subject, mode, "calls that are not spread over the rounds in order")


def contents_change_with_every_call(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """No seed is used twice by one subject."""
    for subject in ("candidate", "reference"):
        seeds = [sample.seed for sample in item.samples if sample.subject == subject]
        if len(set(seeds)) != len(seeds):
            yield _fault(item, subject, "device", "two calls with the same seed")


def references_are_shared(session: SessionClaims) -> Iterator[Fault]:
    """Items that are measured together have one reference, and so the same samples of it."""
    groups: dict[tuple[str, ...], list[ItemClaims]] = {}
    for item in session.items:
        if item.problem is not None:
            key = (item.item.definition.digest, item.item.workload.digest)
            tensors = (tensor.digest for tensor in item.item.tensors)
            groups.setdefault((*key, *tensors), []).append(item)
    size = session.bundle.protocol.candidates_at_once
    for group in groups.values():
        for start in range(0, len(group), size):
            first, *others = group[start : start + size]
            for other in others:
                if _reference(first) != _reference(other):
                    message = f"samples of the reference that are not those of {_name(first)}"
                    yield _fault(other, "reference", "device", message)


def _well_formed(
    item: ItemClaims, samples: list[Sample], mode: str, asked: int, rounds: int
) -> Iterator[Fault]:
    for sample in samples:
        if sample.round >= rounds or sample.index >= asked:
            yield _fault(item, sample.subject, mode, f"call {sample.index} of round {sample.round}")
        if (sample.wall_ns is None) != (mode == "device"):
            yield _fault(item, sample.subject, mode, "wall times that do not belong to its mode")


def _reference(item: ItemClaims) -> list[tuple[str, int, int, int, int, int | None]]:
    return [
        (s.mode, s.round, s.index, s.seed, s.device_ns, s.wall_ns)
        for s in item.samples
        if s.subject == "reference"
    ]


def _name(item: ItemClaims) -> str:
    return item.item.item_id


def _fault(item: ItemClaims, subject: str, mode: str, message: str) -> Fault:
    return Fault(f"{subject}, {mode}, of {_name(item)}", f"has {message}", SAMPLES)
