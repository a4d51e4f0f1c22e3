"""Claims that do not follow from samples, calibration or job are refused with their path."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assets.reruns.bundles import BundleError, read_bundle, read_result
from assets.reruns.sample_results import ARCHIVES
from tests.reruns.sessions import (
    PART,
    PASSED,
    UNBUILT,
    WRONG,
    StoredSession,
    changed_copy,
    on_a_cpu,
    on_another_day,
    unpacked,
    with_fewer_calls,
)

Change = Callable[[StoredSession], None]


def proven(folder: Path) -> None:
    read_result(folder / "result", read_bundle(folder / "bundle"))


def at(*path: str | int, value: Any) -> Change:
    """Sets one place of result.json."""

    def change(session: StoredSession) -> None:
        place: Any = session.result
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return change


def item(*path: str | int, value: Any, of: str = PASSED) -> Change:
    return at("items", PART.index(of), *path, value=value)


def both(*changes: Change) -> Change:
    def change(session: StoredSession) -> None:
        for one in changes:
            one(session)

    return change


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_what_ships_proves_itself(archive: Path, tmp_path: Path) -> None:
    proven(unpacked(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        lambda session: None,
        lambda session: on_another_day(session, "2027-01-01"),
        on_a_cpu,
        with_fewer_calls,
        lambda session: errors_of(session, WRONG, math.nan),
        at("started_at", value="2026-11-30T05:40:59.131216+02:00"),
    ],
)
def test_an_honest_part_of_it_proves_itself(
    part: StoredSession, tmp_path: Path, change: Change
) -> None:
    proven(changed_copy(part, tmp_path / "copy", change))


def errors_of(session: StoredSession, item_id: str, value: float) -> None:
    found = session.item(item_id)["correctness"]
    for place in (found, found["outputs"][0]):
        place |= {"max_absolute_error": value, "max_relative_error": value}


def drop_the_slowest(session: StoredSession) -> None:
    slowest = max(session.samples_of(PASSED, "candidate", "device"), key=lambda s: s["device_ns"])
    session.samples.remove(slowest)
    session.recompute()


def repeat_the_fastest(session: StoredSession) -> None:
    """Each slow call replaced by the fastest one, seed and all."""
    own = session.samples_of(PASSED, "candidate", "device")
    fastest = min(own, key=lambda s: s["device_ns"])
    for sample in own:
        sample |= {"device_ns": fastest["device_ns"], "seed": fastest["seed"]}
    session.recompute()


def faster_in_any_order(session: StoredSession) -> None:
    own = session.samples_of(PASSED, "candidate", "device")
    for sample, value in zip(own, sorted(s["device_ns"] for s in own), strict=True):
        sample["device_ns"] = value
    own[0]["round"] = 9
    session.recompute()


def a_thousand_times_faster(session: StoredSession) -> None:
    for sample in session.samples_of(PASSED, "candidate", "device"):
        sample["device_ns"] //= 1000
    session.recompute()


def much_faster_events(session: StoredSession) -> None:
    """Above the floor, but far from what the host's clock saw."""
    for sample in session.samples_of(PASSED, "candidate", "wall"):
        sample["device_ns"] //= 2
    for sample in session.samples_of(PASSED, "candidate", "device"):
        sample["device_ns"] //= 2
    session.recompute()


def slower_reference(session: StoredSession) -> None:
    for sample in session.samples_of(PASSED, "reference", "device"):
        sample["device_ns"] *= 2
    session.recompute()


def no_reference(session: StoredSession) -> None:
    session.samples = [s for s in session.samples if s["subject"] == "candidate"]


def another_gpu(session: StoredSession) -> None:
    session.result["device"]["name"] = "NVIDIA B200"
    session.environment["device"]["name"] = "NVIDIA B200"


def an_unknown_gpu(session: StoredSession) -> None:
    session.result["device"]["name"] = "NVIDIA Nothing"
    session.environment["device"]["name"] = "NVIDIA Nothing"


def drifted(session: StoredSession) -> None:
    """Clean beside a drift of 90%, which the figures really have."""
    calibration = session.result["calibration"]
    calibration["after"]["matmul_flops"] = calibration["before"]["matmul_flops"] / 10
    calibration["drift"]["matmul_flops"] = 0.9


def throttled(session: StoredSession) -> None:
    session.environment["telemetry"][0]["throttle_reasons"] = 0x40


def timer_disagrees(session: StoredSession) -> None:
    reason = {"code": "TIMER_DISAGREES", "text": "A row of calls took longer."}
    session.item()["reasons"] = [reason]


def trace(path: str, value: Any) -> Change:
    def change(session: StoredSession) -> None:
        session.traces[0]["evaluation"][path] = value

    return change


FORGED: list[tuple[str, Change]] = [
    # What follows from the samples
    ("items[0].statistics.median is", item("statistics", "median", value=1)),
    ("items[0].statistics.p05 is", item("statistics", "p05", value=1106401)),
    ("items[0].statistics.p95 is", item("statistics", "p95", value=1110212)),
    ("items[0].statistics.mad is", item("statistics", "mad", value=0)),
    ("items[0].statistics.mean is", item("statistics", "mean", value=1)),
    ("items[0].statistics.minimum is", item("statistics", "minimum", value=1)),
    ("items[0].statistics.maximum is", item("statistics", "maximum", value=1)),
    ("items[0].statistics.samples is", item("statistics", "samples", value=199)),
    ("statistics.confidence95 is", item("statistics", "confidence95", value=[1, 2_000_000])),
    ("statistics.confidence95 is", item("statistics", "confidence95", value=[1108448, 1107808])),
    ("statistics.round_medians is", item("statistics", "round_medians", value=[1108192] * 10)),
    ("wall_statistics.median is", item("wall_statistics", "median", value=1_000_000)),
    ("reference_statistics.median is", item("reference_statistics", "median", value=10**7)),
    ("items[0].speedup is 17", item("speedup", value=17.0)),
    ("items[0].speedup is None", item("speedup", value=None)),
    ("items[0].wall_statistics is null", item("wall_statistics", value=None)),
    ("candidate, device, of run-9ed4d7f5f1dd3fb3 has 0 calls", both(
        lambda s: s.item(WRONG).update(statistics=s.item()["statistics"]))),
    # The samples themselves
    ("samples.jsonl: candidate, device, of run-478fbd655be95b34 has 199", drop_the_slowest),
    ("has two calls with the same seed", repeat_the_fastest),
    ("has calls that are not spread over the rounds", faster_in_any_order),
    ("has samples of the reference that are not", slower_reference),
    ("reference, device, of run-478fbd655be95b34 has 0 calls", no_reference),
    # Clocks and floor
    ("items[0].reasons lack FASTER_THAN_ROOFLINE", a_thousand_times_faster),
    ("items[0].reasons lack TIMER_DISAGREES", much_faster_events),
    ("items[0].reasons lack TIMER_DISAGREES", item("outside_ns_per_call", value=10**9)),
    ("items[0].outside_ns_per_call is null", item("outside_ns_per_call", value=None)),
    ("items[0].status is PASSED; TIMER_DISAGREES leads to REWARD_HACK", timer_disagrees),
    ("items[0].reasons say TIMER_DISAGREES, which", both(
        timer_disagrees, item("status", value="REWARD_HACK"))),
    ("items[0].notes[0].code is TIMER_DISAGREES, which is no code of notes", item(
        "notes", value=[{"code": "TIMER_DISAGREES", "text": "."}])),
    ("items[0].roofline has", item("roofline", "floor_ns", value=1)),
    ("items[0].roofline has", item("roofline", "floor_ns", value=None)),
    ("items[0].roofline has", item("roofline", value=None)),
    ("items[0].roofline has", another_gpu),
    ("items[0].roofline has", an_unknown_gpu),
    # Status and comparison
    ("items[1].status is PASSED; OUT_OF_TOLERANCE", item("status", value="PASSED", of=WRONG)),
    ("items[1].statistics is null", both(
        item("status", value="PASSED", of=WRONG), item("reasons", value=[], of=WRONG),
        lambda s: s.item(WRONG).update(correctness=s.item()["correctness"]))),
    ("items[3].status is INCORRECT_SHAPE", item("status", value="INCORRECT_SHAPE", of=UNBUILT)),
    ("items[0].reasons[0].code is 'NOBODY_SAYS'", item(
        "reasons", value=[{"code": "NOBODY_SAYS", "text": "."}])),
    ("items[0].correctness is null", item("correctness", value=None)),
    ("outputs[0].max_absolute_error is nan", item(
        "correctness", "outputs", 0, "max_absolute_error", value=math.nan)),
    ("correctness.max_absolute_error is not the worst", item(
        "correctness", "max_absolute_error", value=math.nan)),
    ("outputs[0].max_absolute_error is inf", lambda session: errors_of(session, PASSED, math.inf)),
    ("correctness.max_absolute_error is not the worst", item(
        "correctness", "max_absolute_error", value=0.0)),
    ("outputs[0].nan_both is 3", item("correctness", "outputs", 0, "nan_both", value=3)),
    ("outputs[0].matched_ratio is 0.5", both(
        item("correctness", "outputs", 0, "matched_ratio", value=0.5),
        item("correctness", "matched_ratio", value=0.5))),
    ("outputs[0].tolerance is 100", item(
        "correctness", "outputs", 0, "tolerance", "absolute", value=100.0)),
    ("correctness.outputs are not those", item("correctness", "outputs", 0, "name", value="x")),
    ("items[0].call_convention is", item("call_convention", "style", value="destination")),
    ("items[0].log is 'environment.json'", item("log", value="environment.json")),
    ("items[0].reproduces is", item("reproduces", value="sha256:" + "0" * 64)),
    ("items[0].solution_digest is", item("solution_digest", value="sha256:" + "0" * 64)),
    # The machine
    ("calibration.reasons are []; the figures give ['CALIBRATION_DRIFT'", drifted),
    ("calibration.drift is", at("calibration", "drift", "matmul_flops", value=0.0)),
    ("calibration.clean is False beside", at("calibration", "clean", value=False)),
    ("calibration.reasons are []; the figures give ['THROTTLED']", throttled),
    ("calibration.reasons[0].code is 'RAISED'", at(
        "calibration", "reasons", value=[{"code": "RAISED", "text": "."}])),
    ("may_become_verified is False", at("may_become_verified", value=False)),
    ("may_become_verified is True", both(on_a_cpu, at("may_become_verified", value=True))),
    ("device is not that of environment.json", at("device", "driver", value="1.0")),
    ("environment.json: cpu_fallback does not", lambda s: s.environment.update(cpu_fallback=True)),
    ("environment.json: software.torch is missing", lambda s: s.environment.update(software={})),
    # The session
    ("state is complete, without both", both(
        at("calibration", "after", value=None), at("calibration", "drift", value=None))),
    ("items[3].status is CANCELLED in a session that is complete", both(
        item("status", value="CANCELLED", of=UNBUILT),
        item("reasons", value=[{"code": "DEADLINE_REACHED", "text": "."}], of=UNBUILT))),
    ("error does not go with", at("error", value="broken")),
    ("finished_at is before started_at", at("started_at", value="2027-11-30T00:00:00Z")),
    ("$.started_at: ", at("started_at", value="2026-11-30T00:00:00")),
    ("$.finished_at: ", at("finished_at", value="0001-01-01T00:00:00+14:00")),
    ("$.finished_at: ", at("finished_at", value=1764540000)),
    ("protocol is", at("protocol", "samples", value=199)),
    ("seeds is", at("seeds", value=[1, 2, 3])),
    ("nonce is", at("nonce", value="another")),
    ("items are not those asked for", lambda s: s.result["items"].reverse()),
    # Types
    ("$.items[0].speedup: ", item("speedup", value=-1.0)),
    ("$.items[0].statistics.median: ", item("statistics", "median", value=2**64)),
    ("$.items[0].statistics.median: ", item("statistics", "median", value="1108128")),
    ("$.items[0].statistics.median: ", item("statistics", "median", value=True)),
    ("$.device.memory_bytes: ", at("device", "memory_bytes", value=2**70)),
    ("$.calibration.before.launch_ns: ", at("calibration", "before", "launch_ns", value=0.0)),
    # The trace rows
    ("traces.jsonl:1: evaluation.status is", trace("status", "RUNTIME_ERROR")),
    ("traces.jsonl:1: evaluation.performance is", trace("performance", {"latency_ms": 0.001})),
    ("traces.jsonl:  3 rows", lambda s: s.traces.pop()),
]  # fmt: skip


@pytest.mark.parametrize(("message", "change"), FORGED, ids=[message for message, _ in FORGED])
def test_a_forged_claim_is_refused_with_its_path(
    part: StoredSession, tmp_path: Path, message: str, change: Change
) -> None:
    folder = changed_copy(part, tmp_path / "copy", change)
    with pytest.raises(BundleError) as refused:
        proven(folder)
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize("make", [fifo, link, Path.mkdir, lambda path: path.write_text("x")])
@pytest.mark.parametrize("place", ["extra", "logs/extra"])
def test_what_no_result_has_is_refused(
    part: StoredSession, tmp_path: Path, make: Callable[[Path], object], place: str
) -> None:
    folder = changed_copy(part, tmp_path / "copy", lambda session: None)
    make(folder / "result" / place)
    with pytest.raises(BundleError, match="extra"):
        proven(folder)


def test_an_unlisted_kind_of_file_is_refused_even_when_it_is_listed(
    part: StoredSession, tmp_path: Path
) -> None:
    folder = changed_copy(part, tmp_path / "copy", lambda session: None)
    (folder / "result" / "notes.txt").write_text("x")
    StoredSession.read(folder).write()
    assert "notes.txt" in json.loads((folder / "result" / "result.json").read_bytes())["files"]
    with pytest.raises(BundleError, match=r"lists notes\.txt, which no result has"):
        proven(folder)
