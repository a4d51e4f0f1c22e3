"""Normalization of whole directories: every item comes out once, whatever is in it."""

import copy
import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest

from assets.traces.layout import root_of
from tests.builders import (
    AUTHOR,
    DEFINITION_FILE,
    OPERATION,
    PUBLIC,
    REMOVED,
    REVISION,
    SOLUTION,
    SOLUTION_FILE,
    TRACE_FILE,
    UUID,
    WORKLOAD_FILE,
    Content,
    Ingested,
    Json,
    dataset,
    definition,
    ingest,
    json_lines,
    solution,
    trace,
    workload,
    workload_row,
    write_files,
)


def ingest_files(root: Path, files: dict[str, Content] | None = None, **kinds: Content) -> Ingested:
    """Ingest the builders' dataset with some files replaced or added; sums are checked."""
    ours = ingest(dataset(root / "dataset", files, **kinds), work=root)
    ours.check_sums()
    return ours


def test_the_builders_dataset_is_published_whole(tmp_path: Path) -> None:
    ours = ingest_files(tmp_path, workloads=[workload_row(uuid="w", axes={"batch": 9})])
    assert ours.problems == []
    assert {table: len(rows) for table, rows in ours.tables.items() if rows} == {
        "revisions": 1,
        "source_files": 4,
        "projects": 1,
        "operations": 1,
        "workloads": 2,
        "implementations": 1,
        "protocols": 1,
        "environments": 1,
        "runs": 1,
        "measurements": 1,
        "artifacts": 2,
    }


GOOD = json.dumps(trace())
OTHER = json.dumps(trace(workload__uuid="other", evaluation__performance__latency_ms=2.0))


@pytest.mark.parametrize(
    ("text", "good_lines", "problems"),
    [
        (f"{GOOD}\n{OTHER}\n", [1, 2], []),
        (f"\ufeff{GOOD}\r\n\r\n{OTHER}", [1, 3], []),
        (f"[{GOOD},\n{OTHER}]", [1, 2], []),
        (f"{GOOD}{OTHER}\n", [1, 1], []),
        (json.dumps(trace(), indent=2), [1], []),
        (json.dumps([trace(), trace(workload__uuid="b")], indent=1), [2, 42], []),
        (f"{GOOD}\n{OTHER[:-40]}\n{OTHER}\n", [1, 3], [(2, "BAD_JSON")]),
        (f"{GOOD}\nnonsense\n{OTHER}", [1, 3], [(2, "BAD_JSON")]),
        (
            f"{GOOD}\n[1, 2]\n3\n{OTHER}",
            [1, 4],
            [(2, "NOT_A_DOCUMENT")] * 2 + [(3, "NOT_A_DOCUMENT")],
        ),
        (GOOD.replace("0.001", "NaN"), [1], []),
        (GOOD.replace("0.001", "Infinity"), [1], []),
        (GOOD.replace("0.001", "-Infinity"), [], [(1, "BAD_MEASURE")]),
        (GOOD.replace("0.001", "1e400"), [1], []),
        (GOOD.replace("0.0125", "NaN"), [], [(1, "BAD_LATENCY")]),
        (GOOD.replace('"batch": 4', '"batch": 4, "batch": 5'), [1], []),
        (GOOD.replace('"batch": 4', f'"batch": {"9" * 400}'), [], [(1, "BAD_AXIS_VALUE")]),
        (GOOD.replace('"batch": 4', f'"batch": {"9" * 5000}'), [], [(1, "BAD_JSON")]),
        (GOOD.replace('"batch": 4', '"batch": NaN'), [], [(1, "BAD_AXIS_VALUE")]),
        (GOOD.replace('"log": ""', '"log": "\\ud800x"'), [1], []),
        (GOOD.replace('"log": ""', '"log": "\\u0000"'), [], [(1, "NUL_CHARACTER")]),
        (GOOD.replace('"log": ""', '"log": "\\\\u0000"'), [1], []),
        (GOOD.replace('"log": ""', f'"log": {"[" * 5000}'), [], [(1, "BAD_JSON")]),
        (GOOD.replace('"log": ""', f'"x": {"[" * 300}{"]" * 300}'), [], [(1, "BAD_JSON")]),
        (GOOD.replace('"log": ""', '"log": "\0"'), [], [(1, "BAD_JSON")]),
        ("", [], []),
        ("\n \r\n", [], []),
        ("[]", [], []),
    ],
)
def test_every_form_of_trace_file_is_read_value_by_value(
    tmp_path: Path, text: str, good_lines: list[int], problems: list[tuple[int, str]]
) -> None:
    ours = ingest_files(tmp_path, traces=text)
    assert sorted(row["line"] for row in ours["runs"]) == good_lines
    assert [(line, reason) for _, line, reason in ours.problems] == problems


def test_text_that_is_no_utf8_is_refused_alone(tmp_path: Path) -> None:
    bad = GOOD.encode().replace(b"NVIDIA", b"NV\xffDIA")
    ours = ingest_files(tmp_path, traces=bad + b"\n" + OTHER.encode())
    assert [row["line"] for row in ours["runs"]] == [2]
    [problem] = [row for row in ours["quarantine"] if row["severity"] == "error"]
    assert problem["message"].startswith("no UTF-8: invalid start byte at byte")


def test_a_directory_of_blank_files_publishes_nothing(tmp_path: Path) -> None:
    files: dict[str, Content] = {
        DEFINITION_FILE: "",
        SOLUTION_FILE: "\n",
        TRACE_FILE: "\ufeff \r\n",
    }
    ours = ingest(write_files(tmp_path / "dataset", files), work=tmp_path)
    ours.check_sums()
    assert ours.problems == []
    assert [table for table, rows in ours.tables.items() if rows] == [
        "revisions",
        "source_files",
        "protocols",
    ]


def test_a_file_whose_place_says_nothing_is_read_as_what_its_fields_say(tmp_path: Path) -> None:
    files: dict[str, Content] = {
        "a/thing.json": definition(),
        "b/thing.json": solution(),
        "c/thing.jsonl": [trace()],
        "d/settings.json": '{"answer": 42}',
        "e/broken.json": "{",
    }
    ours = ingest(write_files(tmp_path / "dataset", files), work=tmp_path)
    ours.check_sums()
    assert len(ours["runs"]) == 1
    assert ours.problems == [
        ("d/settings.json", 1, "UNPLACED_FILE"),
        ("e/broken.json", 1, "UNPLACED_FILE"),
    ]


def test_field_names_of_2025_are_read(tmp_path: Path) -> None:
    old_definition = definition(op_type=REMOVED, type="toy_add", tags=REMOVED)
    old_trace = trace(
        workload__uuid=REMOVED,
        workload__inputs={"x": {"format": "safetensors", "path": "/a/b", "tensor_key": "x"}},
        evaluation__log=REMOVED,
        evaluation__log_file="run.log",
        evaluation__error="no such kernel",
        evaluation__environment__hardware=REMOVED,
        evaluation__environment__device="NVIDIA_H100",
        evaluation__timestamp="2025-06-27T12:45:00Z",
    )
    old_workload = {**workload_row(), "solution": "", "evaluation": {}}
    ours = ingest_files(
        tmp_path,
        {"traces/workloads/toy.jsonl": [old_workload]},
        definition=old_definition,
        solution=solution(spec__build_steps=[], spec__language="Triton"),
        traces=[old_trace],
    )
    assert ours.problems == []
    assert [row["family"] for row in ours["operations"]] == ["toy-add"]
    assert [row["language"] for row in ours["implementations"]] == ["triton"]
    assert [row["hardware_architecture"] for row in ours["environments"]] == ["sm_90"]
    assert [row["content"] for row in ours["artifacts"] if row["kind"] == "log"] == [
        "no such kernel"
    ]
    assert [row["message"] for row in ours["quarantine"]] == [
        "not read: spec.build_steps",
        "not read: evaluation.log_file",
    ]
    assert [row["evaluation_extra_json"] for row in ours["runs"]] == ['{"log_file": "run.log"}']
    assert len(ours["workloads"]) == 2


def test_unknown_fields_are_named_once_and_the_document_is_published(tmp_path: Path) -> None:
    document = definition(init="x", axes__batch__parent="hidden", inputs__x__param="X")
    ours = ingest_files(tmp_path, definition=document)
    [warning] = ours["quarantine"]
    assert (warning["severity"], warning["reason"]) == ("warning", "UNKNOWN_FIELD")
    assert warning["message"] == "not read: init, axes.*.parent, inputs.*.param"
    assert len(ours["runs"]) == 1


def test_a_case_is_published_though_its_measurement_is_refused(tmp_path: Path) -> None:
    ours = ingest_files(tmp_path, traces=[trace(evaluation__status="OOM")])
    assert ours.reasons == ["UNKNOWN_STATUS"]
    assert [row["external_id"] for row in ours["workloads"]] == [UUID]
    assert ours["environments"] == ours["runs"] == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"definition": "other"}, "UNKNOWN_DEFINITION"),
        ({"solution": "other"}, "UNKNOWN_SOLUTION"),
        ({"solution": None}, "NO_SOLUTION"),
        ({"solution": ""}, "NO_SOLUTION"),
        ({"evaluation": None}, "NO_EVALUATION"),
        ({"evaluation": {}}, "NO_EVALUATION"),
        ({"evaluation": REMOVED}, "NO_EVALUATION"),
        ({"workload": REMOVED}, "MISSING_FIELD"),
        ({"workload__axes": {}}, "BAD_AXIS_VALUE"),
        ({"workload__axes": {"batch": 4, "Batch": 4}}, "NAME_COLLISION"),
        ({"workload__axes": {"batch": 4, "__proto__": 1}}, "BAD_AXIS"),
        ({"workload__inputs": {"x": {"type": "scalar", "value": None}}}, "BAD_INPUT"),
        ({"workload__inputs": {"x": {"type": "scalar", "value": math.nan}}}, "BAD_INPUT"),
        ({"workload__uuid": "a\0"}, "NUL_CHARACTER"),
        ({"workload__uuid": 7}, "BAD_FIELD"),
    ],
)
def test_a_trace_that_cannot_be_placed_is_refused(
    tmp_path: Path, changes: Json, reason: str
) -> None:
    ours = ingest_files(tmp_path, traces=[trace(**changes), trace()])
    assert [(line, found) for _, line, found in ours.problems] == [(1, reason)]
    assert [row["line"] for row in ours["runs"]] == [2]


def test_cases_that_look_alike_are_kept_apart(tmp_path: Path) -> None:
    values: list[Json] = [{"value": 1}, {"value": True}, {}, {"value": None}, {"value": 2}]
    inputs = [{"s": {"type": "scalar", **value}} for value in values]
    traces = [trace(workload__inputs=each) for each in inputs]
    traces += [trace(workload__axes={"batch": 5}), trace(workload__tolerance={"max_atol": 0.5})]
    with_scalar = definition(inputs__s={"dtype": "float32"})
    alone = {}
    for number, document in enumerate(traces):
        ours = ingest_files(tmp_path / str(number), definition=with_scalar, traces=[document])
        alone[number + 1] = [row["workload_digest"] for row in ours["workloads"]]
    together = ingest_files(tmp_path / "all", definition=with_scalar, traces=traces)
    by_line = {row["line"]: [row["workload_digest"]] for row in together["runs"]}
    assert {**by_line, 4: []} == alone
    assert together.problems == [(TRACE_FILE, 4, "BAD_INPUT")]


def test_two_names_of_one_identifier_are_refused_also_after_a_good_case(tmp_path: Path) -> None:
    bad = trace(workload__axes={"batch": 4, "Batch": 4})
    ours = ingest_files(tmp_path, traces=[trace(), bad])
    assert ours.reasons == ["NAME_COLLISION"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"axes__hidden__value": REMOVED}, "BAD_AXIS"),
        ({"axes__hidden__value": 8.5}, "BAD_AXIS"),
        ({"axes__hidden__value": 1e300}, "BAD_AXIS"),
        ({"axes__n-1": {"type": "var"}}, "BAD_AXIS"),
        ({"axes__Batch": {"type": "var"}}, "NAME_COLLISION"),
        ({"axes__e": {"type": "expr"}}, "BAD_AXIS"),
        ({"axes__e": {"type": "expr", "expression": "batch!"}}, "BAD_AXIS"),
        ({"axes__e": {"type": "expr", "expression": "1" * 201}}, "TEXT_TOO_LONG"),
        ({"axes__e": {"type": "sum"}}, "BAD_FIELD"),
        ({"inputs__x__shape": ["batch / 2"]}, "BAD_SHAPE"),
        ({"inputs__x__shape": ["hidden / 3"]}, "BAD_SHAPE"),
        ({"inputs__x__shape": ["(" * 5000]}, "BAD_SHAPE"),
        ({"inputs__x__shape": ["9" * 5000]}, "BAD_SHAPE"),
        ({"inputs__x__shape": [-1]}, "BAD_SHAPE"),
        ({"inputs__x__shape": [math.inf]}, "BAD_SHAPE"),
        ({"inputs__x__dtype": "4bit"}, "BAD_DTYPE"),
        ({"inputs__x__dtype": REMOVED}, "MISSING_FIELD"),
        ({"inputs__X": {"dtype": "int8"}}, "NAME_COLLISION"),
        ({"outputs": {}}, "MISSING_FIELD"),
        ({"op_type": "火"}, "BAD_NAME"),
        ({"description": "x" * 2001}, "TEXT_TOO_LONG"),
        ({"description": "a\0"}, "NUL_CHARACTER"),
    ],
)
def test_a_bad_definition_is_refused_with_what_needs_it_and_nothing_else(
    tmp_path: Path, changes: Json, reason: str
) -> None:
    files: dict[str, Content] = {
        "definitions/toy/good.json": definition("good"),
        f"solutions/{AUTHOR}/toy/good/s.json": solution("s", definition="good"),
        "traces/ann/toy/good.jsonl": [trace(definition="good", solution="s")],
    }
    ours = ingest_files(tmp_path, files, definition=definition(**changes))
    assert ours.reasons == sorted([reason, *["DEFINITION_IN_QUARANTINE"] * 2])
    assert [row["definition_name"] for row in ours["runs"]] == ["good"]


@pytest.mark.parametrize(
    ("changes", "reason", "json_path"),
    [
        ({"name": "火"}, "BAD_NAME", "$.name"),
        ({"definition": REMOVED}, "MISSING_FIELD", "$.definition"),
        ({"definition": "other"}, "UNKNOWN_DEFINITION", "$.definition"),
        ({"author": "x" * 201}, "TEXT_TOO_LONG", "$.author"),
        ({"spec__language": "3d"}, "BAD_FIELD", "$.spec.language"),
        ({"spec__language": 3}, "BAD_FIELD", "$.spec.language"),
        ({"spec__entry_point": f"main.py::{'x' * 201}"}, "TEXT_TOO_LONG", "$.spec.entry_point"),
        ({"spec__target_hardware": ["x" * 101]}, "TEXT_TOO_LONG", "$.spec.target_hardware"),
        ({"sources": [{"path": "x" * 201, "content": "y"}]}, "TEXT_TOO_LONG", "$.sources.path"),
        ({"sources": [{"path": "x"}]}, "MISSING_FIELD", "$.sources[0].content"),
        ({"sources": [{"path": "x", "content": "a\0"}]}, "NUL_CHARACTER", "$.sources"),
        ({"description": "x" * 2001}, "TEXT_TOO_LONG", "$.description"),
    ],
)
def test_a_bad_solution_is_refused_and_the_field_named(
    tmp_path: Path, changes: Json, reason: str, json_path: str
) -> None:
    ours = ingest_files(tmp_path, solution=solution(**changes))
    [problem] = [row for row in ours["quarantine"] if row["kind"] == "solution"]
    assert (problem["reason"], problem["json_path"]) == (reason, json_path)
    assert json_path[2:] in problem["message"]
    assert ours["runs"] == []


def test_the_folder_of_the_trace_decides_between_authors(tmp_path: Path) -> None:
    files: dict[str, Content] = {
        f"solutions/bob/toy/{OPERATION}/{SOLUTION}.json": solution(author="bob", sources=[]),
        f"traces/bob/toy/{OPERATION}.jsonl": [trace()],
        f"traces/eve/toy/{OPERATION}.jsonl": [trace()],
    }
    ours = ingest_files(tmp_path, files)
    authors = {row["implementation_digest"]: row["author"] for row in ours["implementations"]}
    measured = {row["path"]: authors[row["implementation_digest"]] for row in ours["runs"]}
    assert measured == {TRACE_FILE: AUTHOR, f"traces/bob/toy/{OPERATION}.jsonl": "bob"}
    assert ours.problems == [(f"traces/eve/toy/{OPERATION}.jsonl", 1, "AMBIGUOUS_SOLUTION")]


def test_one_author_with_two_solutions_of_one_name_is_not_guessed_at(tmp_path: Path) -> None:
    files: dict[str, Content] = {SOLUTION_FILE.replace(".json", "-2.json"): solution(sources=[])}
    ours = ingest_files(tmp_path, files)
    assert ours.reasons == ["DUPLICATE_SOLUTION"]
    assert len(ours["implementations"]) == 2


def test_each_root_is_a_world_of_its_own(tmp_path: Path) -> None:
    files: dict[str, Content] = {}
    sizes = {"run_1/": 8, "run_2/deep/": 16, "": 32}
    for root, hidden in sizes.items():
        files[root + DEFINITION_FILE] = definition(axes__hidden__value=hidden)
        files[root + SOLUTION_FILE] = solution(
            description=root, sources=[{"path": "m.py", "content": root}]
        )
        files[root + TRACE_FILE] = [trace()]
        files[root + WORKLOAD_FILE] = [workload_row(uuid=f"of {root}")]
    ours = ingest(write_files(tmp_path / "dataset", files), work=tmp_path)
    ours.check_sums()
    assert ours.problems == []
    paths = {row["implementation_digest"]: row["path"] for row in ours["implementations"]}
    assert {row["path"]: paths[row["implementation_digest"]] for row in ours["runs"]} == {
        root + TRACE_FILE: root + SOLUTION_FILE for root in sizes
    }
    operations = {row["operation_digest"]: row["path"] for row in ours["operations"]}
    for table in ("runs", "workloads", "implementations"):
        for row in ours[table]:
            assert root_of(operations[row["operation_digest"]]) == root_of(row["path"])


@pytest.mark.parametrize("root", ["run_1/", "definitions_of_old/run/"])
def test_what_another_root_has_is_named_and_not_taken(tmp_path: Path, root: str) -> None:
    files: dict[str, Content] = {
        DEFINITION_FILE: definition(),
        SOLUTION_FILE: solution(),
        root + SOLUTION_FILE: solution(),
        root + TRACE_FILE: [trace()],
        f"{root}sub/{DEFINITION_FILE}": definition(),
        f"{root}sub/{TRACE_FILE}": [trace()],
    }
    ours = ingest(write_files(tmp_path / "dataset", files), work=tmp_path)
    ours.check_sums()
    assert ours.problems == [
        (root + SOLUTION_FILE, 1, "UNKNOWN_DEFINITION"),
        (f"{root}sub/{TRACE_FILE}", 1, "UNKNOWN_SOLUTION"),
        (root + TRACE_FILE, 1, "UNKNOWN_DEFINITION"),
    ]
    messages = {row["path"]: row["message"] for row in ours["quarantine"]}
    assert messages[root + TRACE_FILE].startswith(
        f"{root} has no definition '{OPERATION}'; the top folder, {root}sub/ has one"
    )
    assert f"{root}sub/ holds solution" in messages[f"{root}sub/{TRACE_FILE}"]
    assert f"the top folder, {root} has one" in messages[f"{root}sub/{TRACE_FILE}"]
    assert ours["runs"] == []


def test_files_whose_place_says_nothing_belong_to_the_root_around_them(tmp_path: Path) -> None:
    files: dict[str, Content] = {
        "a/kernels/d.json": definition(),
        "a/solutions.json": [solution()],
        "a/traces/x.jsonl": [trace()],
        "b/mine/d.json": definition(axes__hidden__value=16),
        "b/mine/s.json": solution(),
        "b/traces.jsonl": [trace()],
    }
    ours = ingest(write_files(tmp_path / "dataset", files), work=tmp_path)
    assert ours.problems == []
    assert len({row["operation_digest"] for row in ours["runs"]}) == 2


def test_a_solution_of_another_definition_is_refused(tmp_path: Path) -> None:
    files: dict[str, Content] = {"definitions/toy/other.json": definition("other")}
    ours = ingest_files(tmp_path, files, traces=[trace(definition="other")])
    assert ours.reasons == ["SOLUTION_OF_OTHER_DEFINITION"]


def test_the_first_of_two_definitions_of_one_name_is_kept(tmp_path: Path) -> None:
    files: dict[str, Content] = {
        "definitions/a/first.json": definition(reference="def run(x, w): ..."),
        "definitions/z/same_as_first.json": definition(reference="def run(x, w): ..."),
    }
    ours = ingest_files(tmp_path, files)
    assert ours.problems == [(DEFINITION_FILE, 1, "DUPLICATE_DEFINITION")]
    assert len({row["reference_digest"] for row in ours["operations"]}) == 1


def test_texts_with_lone_surrogates_are_stored_as_replacement_characters(tmp_path: Path) -> None:
    def escaped(document: Json) -> str:
        return json.dumps(document).replace("@@", "\\ud800")

    ours = ingest_files(
        tmp_path,
        definition=escaped(definition(tags=["@@a"], reference="@@")),
        solution=escaped(solution(spec__dependencies=["@@"])),
        traces=escaped(trace(workload__uuid="@@", evaluation__log="@@")),
    )
    assert ours.problems == []
    assert [row["dependencies"] for row in ours["implementations"]] == [["\ufffd"]]
    log = next(row for row in ours["artifacts"] if row["kind"] == "log")
    assert (log["content"], log["size_bytes"]) == ("\ufffd", 3)


def test_a_manifest_holds_no_lone_surrogate(tmp_path: Path) -> None:
    document = json.dumps(solution(description="@@")).replace("@@", "\\ud800")
    ours = ingest_files(tmp_path, solution=document)
    [problem] = [row for row in ours["quarantine"] if row["kind"] == "solution"]
    assert (problem["reason"], problem["json_path"]) == ("BAD_FIELD", "$.description")


def test_numbers_that_json_has_no_form_for_are_kept_as_text(tmp_path: Path) -> None:
    document = trace(evaluation__correctness__extra={"a": [math.nan], "b": {"c": math.inf}})
    ours = ingest_files(tmp_path, traces=[document])
    [run] = ours["runs"]
    assert json.loads(run["correctness_extra_json"]) == {"a": ["nan"], "b": {"c": "inf"}}


def test_the_newest_trace_is_found_by_instant_not_by_spelling(tmp_path: Path) -> None:
    times = ["2025-10-21T23:00:00+09:00", "2025-10-21 20:00:00", "2025-10-21T15:00:00Z"]
    ours = ingest_files(tmp_path, traces=[trace(evaluation__timestamp=time) for time in times])
    newest = ours.normalized.newest_trace_at
    assert newest is not None
    assert newest.isoformat() == "2025-10-21T20:00:00"


# Values that documents do not hold but files may.
_STRANGE: list[object] = [
    None,
    True,
    -1,
    0,
    2.5,
    1e300,
    2**53,
    10**400,
    math.nan,
    -math.inf,
    "",
    "\0",
    "\ud800",
    "火",
    "constructor",
    "__proto__",
    "NaN",
    "x" * 2500,
    "2025-02-30",
    "9" * 5000,
    [],
    [None],
    [[]],
    {},
    {"": {}},
    {"type": "expr", "expression": "(" * 150},
]


def _mutated(document: Json, random_: random.Random) -> object:
    """A document with one to three values anywhere in it replaced, removed or renamed."""
    changed: Json = json.loads(json.dumps(document))
    for _ in range(random_.randint(1, 3)):
        part: object = changed
        while True:
            if not isinstance(part, dict | list) or not part:
                break
            key = random_.choice(list(part) if isinstance(part, dict) else range(len(part)))
            if random_.random() < 0.35 or not isinstance(part[key], dict | list):
                action = random_.random()
                if action < 0.7:
                    part[key] = copy.deepcopy(random_.choice(_STRANGE))
                elif action < 0.85 or not isinstance(part, dict):
                    del part[key]
                else:
                    part[random_.choice(["", "X", "x", "é", "0", "4294967295"])] = part.pop(key)
                break
            part = part[key]
    return changed


@pytest.mark.parametrize("seed", range(12))
def test_no_content_of_a_dataset_is_an_error(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    whole_workload = workload(tolerance={"max_atol": 0.1}, inputs__s={"type": "scalar", "value": 1})
    whole_trace = trace(
        workload=whole_workload,
        evaluation__correctness__extra={"matched_ratio": 1.0},
        evaluation__log="log",
    )
    whole_definition = definition(
        axes__half={"type": "expr", "expression": "batch // 2"}, inputs__s={"dtype": "float32"}
    )
    files: dict[str, Content] = {
        f"definitions/toy/{number}.json": json.dumps(_mutated(whole_definition, random_))
        for number in range(3)
    }
    files |= {
        f"solutions/ann/toy/{number}.json": json.dumps(_mutated(solution(), random_))
        for number in range(3)
    }
    ours = ingest_files(
        tmp_path,
        files,
        definition=whole_definition,
        traces=json_lines([_mutated(whole_trace, random_) for _ in range(25)] + [whole_trace]),
        workloads=json_lines([_mutated(workload_row(), random_) for _ in range(5)]),
    )
    assert Counter(ours.reasons).total() == sum(ours.normalized.counts.quarantined.values())


def test_the_revision_that_is_asked_for_is_in_the_identity(tmp_path: Path) -> None:
    ours = ingest(dataset(tmp_path / "dataset"), revision=REVISION, work=tmp_path)
    assert {row["source_revision"] for row in ours["implementations"]} == {REVISION}
    assert {row["revision"] for row in ours["runs"]} == {REVISION}


def test_several_processes_find_what_one_finds(
    corpus: Path, flashinfer_trace: Ingested, tmp_path: Path
) -> None:
    both = ingest(
        corpus / "flashinfer-trace",
        revision=flashinfer_trace.normalized.snapshot.revision,
        name=PUBLIC,
        processes=2,
        work=tmp_path,
    )
    for table in ("runs", "workloads", "environments", "quarantine"):
        key = "run_digest" if table == "runs" else "path"
        assert Counter(row[key] for row in both[table]) == Counter(
            row[key] for row in flashinfer_trace[table]
        )


def test_further_times_of_a_trace_are_kept_beside_and_named(tmp_path: Path) -> None:
    plain = trace()
    more = trace(workload__uuid="w2", workload__axes__batch=5, evaluation__setup={"l2": "warm"})
    more["evaluation"]["performance"] |= {"kernel_ms": 0.008, "e2e_ms": float("inf")}
    more["evaluation"]["correctness"]["note"] = "a"
    bare = ingest(dataset(tmp_path / "bare", traces=[plain]), revision=REVISION)
    ours = ingest(dataset(tmp_path / "more", traces=[plain, more]), revision=REVISION)
    ours.check_sums()
    kept = [row["evaluation_extra_json"] for row in ours["runs"]]
    assert kept[0] is None
    assert json.loads(kept[1]) == {
        "setup": {"l2": "warm"},
        "correctness.note": "a",
        "performance.kernel_ms": 0.008,
        "performance.e2e_ms": "inf",
    }
    [warning] = ours["quarantine"]
    assert (warning["severity"], warning["reason"], warning["line"]) == (
        "warning",
        "UNKNOWN_FIELD",
        2,
    )
    assert warning["message"] == (
        "not read: evaluation.setup, evaluation.correctness.note, evaluation.performance.kernel_ms,"
        " evaluation.performance.e2e_ms"
    )
    assert ours["runs"][0]["run_digest"] == bare["runs"][0]["run_digest"]


def test_many_files_that_are_no_documents_are_one_item(tmp_path: Path) -> None:
    noise = {f"configs/{number % 7}/{number}.json": '{"a": 1}' for number in range(576)}
    ours = ingest(dataset(tmp_path / "dataset", noise), work=tmp_path)
    ours.check_sums()
    assert ours.reasons == ["UNPLACED_FILE"]
    [row] = ours["quarantine"]
    assert "575 others" in row["message"]
    assert "configs/0, configs/1, configs/2, configs/3, configs/4 and 2 more" in row["message"]
    assert len([row for row in ours["source_files"] if row["path"] in noise]) == 576


def test_a_shape_over_a_declared_axis_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    bad = definition(inputs__x__shape=["batch + 1", "hidden"])
    ours = ingest(dataset(tmp_path / "dataset", definition=bad), work=tmp_path)
    [message] = [row["message"] for row in ours["quarantine"] if row["reason"] == "BAD_SHAPE"]
    assert "unbound" not in message
    assert "axis 'batch' has another value in each workload" in message
    missing = definition(inputs__x__shape=["nobody + 1", "hidden"])
    ours = ingest(dataset(tmp_path / "missing", definition=missing), work=tmp_path)
    [message] = [row["message"] for row in ours["quarantine"] if row["reason"] == "BAD_SHAPE"]
    assert "unbound axis 'nobody'" in message
