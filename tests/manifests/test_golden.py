"""Every object that the public index makes from the corpus is made here, and is the same."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assets.manifests import records
from tests.builders import Ingested, Json

DATASET_URL = "https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace"
TABLES = {
    "SoftwareProject": "projects",
    "OperationSpec": "operations",
    "WorkloadCase": "workloads",
    "ImplementationRevision": "implementations",
    "BenchmarkProtocol": "protocols",
    "ExecutionEnvironment": "environments",
    "BenchmarkRun": "runs",
}


def _digest_column(kind: str) -> str:
    return records.KEYS[TABLES[kind]][0]


def _manifest(row: Json) -> Json:
    """The whole manifest of a row, as it is published."""
    return {**json.loads(row["canonical_json"]), "metadata": json.loads(row["metadata_json"])}


def _millisecond_text(row: Json) -> str:
    return f"{row['observed_at'].replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


class Index:
    """The ingested rows as the golden file writes objects."""

    def __init__(self, ingested: Ingested) -> None:
        self._ingested = ingested
        self.artifacts = {row["artifact_digest"]: row for row in ingested["artifacts"]}
        self.environments = {row["environment_digest"]: row for row in ingested["environments"]}
        self.implementations = defaultdict(list)
        for row in ingested["implementations"]:
            self.implementations[row["implementation_digest"]].append(row)
        self.measurements = defaultdict(list)
        for row in ingested["measurements"]:
            self.measurements[row["run_digest"]].append(row)
        self._rows: dict[tuple[str, str, str | None], list[Json]] = defaultdict(list)
        for kind, table in TABLES.items():
            for row in ingested[table]:
                key = (kind, row[_digest_column(kind)], EXTERNAL_IDS[kind](row))
                self._rows[key].append(row)

    def rows(self, expected: Json) -> list[Json]:
        """Our rows of the golden object's digest and external id."""
        return self._rows[expected["kind"], expected["digest"], expected.get("externalId")]

    def digests(self, kind: str) -> set[str]:
        return {row[_digest_column(kind)] for row in self._ingested[TABLES[kind]]}


EXTERNAL_IDS: dict[str, Callable[[Json], str | None]] = {
    "SoftwareProject": lambda row: None,
    "OperationSpec": lambda row: row["name"],
    "WorkloadCase": lambda row: row["external_id"],
    "ImplementationRevision": lambda row: row["path"],
    "BenchmarkProtocol": lambda row: None,
    "ExecutionEnvironment": lambda row: None,
    "BenchmarkRun": lambda row: row["external_id"],
}


def _project(row: Json, index: Index) -> Json:
    return {
        "slug": row["slug"],
        "row": {
            "name": row["name"],
            "normalizedName": row["normalized_name"],
            "canonicalUrl": row["canonical_url"],
            "kind": row["kind"],
        },
    }


def _operation(row: Json, index: Index) -> Json:
    return {"slug": row["slug"], "aliases": row["aliases"], "tags": row["tags"]}


def _case(row: Json, index: Index) -> Json:
    return {
        "slug": None,
        "row": {
            "shapeSummary": row["shape_summary"],
            "dtypes": row["dtypes"],
            "layoutKeys": row["layout_keys"],
        },
    }


def _implementation(row: Json, index: Index) -> Json:
    source = index.artifacts[row["source_digest"]]
    return {
        "slug": row["slug"],
        "projectSlug": row["project_slug"],
        "row": {
            "sourceRevision": row["source_revision"],
            "language": row["language"],
            # A dataset names no framework and gives no recipe to install.
            "framework": None,
            "installable": False,
            "installKind": None,
            "installCommand": None,
            "targetArchitectures": row["target_architectures"],
            "licenseExpression": row["license_concluded"],
            "licenseDeclared": row["license_declared"],
            "sourceAvailable": row["source_available"],
            "title": row["solution_name"],
            "role": row["role"],
        },
        "deployability": {
            "eligible": not row["deployability_reasons"],
            "reasons": row["deployability_reasons"],
        },
        "artifacts": [
            {
                "role": "source",
                "kind": source["kind"],
                "mediaType": source["media_type"],
                "digest": row["source_digest"],
                "sizeBytes": row["source_size_bytes"],
                "storage": "inline",
                "uri": DATASET_URL,
                "license": source["license"],
            }
        ],
    }


def _run(row: Json, index: Index) -> Json:
    environment = index.environments[row["environment_digest"]]
    implementation = index.implementations[row["implementation_digest"]][0]
    return {
        "slug": None,
        "status": row["status"],
        "protocolKey": row["protocol_digest"],
        "environmentKey": row["environment_digest"],
        "correctnessKey": row["correctness_key"],
        "metricKey": row["metric_key"],
        "comparisonKey": row["comparison_key"],
        "evidence": row["evidence_level"],
        "row": {
            "observedAt": _millisecond_text(row),
            "hardwareVendor": environment["hardware_vendor"],
            "hardwareModel": environment["hardware_product"],
            "hardwareArchitecture": environment["hardware_architecture"],
            "driverMajor": environment["driver"],
            "cudaMajor": environment["cuda_major"],
            "primaryMetric": row["primary_metric"],
            "primaryValue": row["primary_value"],
            "primaryUnit": row["primary_unit"],
            "primaryStatistic": row["primary_statistic"],
            "sampleCount": row["sample_count"],
            "uncertaintyLow": row["uncertainty_low_ns"],
            "uncertaintyHigh": row["uncertainty_high_ns"],
            "reported": True,
            "sourceAvailable": implementation["source_available"],
            "installable": False,
            "licenseExpression": implementation["license_concluded"],
            "hasRawEvidence": row["has_raw_evidence"],
            "sourceNative": row["source_native"],
            "solScore": None,
            "environmentSummary": environment["summary"],
        },
        "measurements": [
            {
                "metric": item["metric"],
                "statistic": item["statistic"],
                "unit": item["unit"],
                "value": item["value"],
                "sampleCount": item["sample_count"],
            }
            for item in index.measurements[row["run_digest"]]
        ],
        "artifacts": [
            {
                "role": "logs",
                "kind": log["kind"],
                "mediaType": log["media_type"],
                "digest": log["artifact_digest"],
                "sizeBytes": log["size_bytes"],
                "storage": "inline",
            }
            for log in [index.artifacts.get(row["log_digest"])]
            if log is not None
        ],
    }


COLUMNS: dict[str, Callable[[Json, Index], Json]] = {
    "SoftwareProject": _project,
    "OperationSpec": _operation,
    "WorkloadCase": _case,
    "ImplementationRevision": _implementation,
    "BenchmarkProtocol": lambda row, index: {"slug": None},
    "ExecutionEnvironment": lambda row, index: {"slug": None},
    "BenchmarkRun": _run,
}


def _as_golden(row: Json, kind: str, index: Index, *, duplicate: bool) -> Json:
    ours = {
        "kind": kind,
        "digest": row[_digest_column(kind)],
        "externalId": EXTERNAL_IDS[kind](row),
        **COLUMNS[kind](row, index),
    }
    return {**ours, "duplicate": True} if duplicate else {**ours, "manifest": _manifest(row)}


@dataclass
class Tally:
    """What the comparison found for one kind."""

    equal: int = 0
    wrong: list[str] = field(default_factory=list)
    corrected_beside: Counter[str] = field(default_factory=Counter)
    ours_only: Counter[str] = field(default_factory=Counter)


def _difference(expected: Json, ours: Json) -> str:
    fields = [name for name in {**expected, **ours} if expected.get(name) != ours.get(name)]
    lines = [f"{expected['kind']} {expected.get('externalId')}"]
    for name in fields:
        lines.append(f"  {name}: public index {json.dumps(expected.get(name), sort_keys=True)}")
        lines.append(
            f"  {' ' * len(name)}  ours         {json.dumps(ours.get(name), sort_keys=True)}"
        )
    return "\n".join(lines)


@pytest.fixture(scope="module")
def objects(golden: Path) -> list[Json]:
    lines = (golden / "objects.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def tallies(objects: list[Json], flashinfer_trace: Ingested) -> dict[str, Tally]:
    index = Index(flashinfer_trace)
    found = {kind: Tally() for kind in TABLES}
    for expected in objects:
        tally = found[expected["kind"]]
        rows = index.rows(expected)
        duplicate = expected.get("duplicate", False)
        candidates = [_as_golden(row, expected["kind"], index, duplicate=duplicate) for row in rows]
        if expected in candidates:
            tally.equal += 1
            for row in rows[:1]:
                tally.corrected_beside.update(_corrections(expected["kind"], row))
        elif candidates:
            tally.wrong.append(_difference(expected, candidates[0]))
        else:
            tally.wrong.append(f"{expected['kind']} {expected.get('externalId')}: not published")
    published = {(item["kind"], item["digest"]) for item in objects}
    for kind, tally in found.items():
        for digest in index.digests(kind):
            if (kind, digest) not in published:
                tally.ours_only[_why_ours_only(kind, digest, flashinfer_trace)] += 1
    return found


def _corrections(kind: str, row: Json) -> list[str]:
    """Rules of the list in docs/conformance.md whose corrected value stands beside this one."""
    if kind == "ExecutionEnvironment":
        published = (row["hardware_vendor"], row["hardware_architecture"])
        return ["3"] if published != (row["gpu_vendor"], row["gpu_architecture"]) else []
    if kind == "ImplementationRevision":
        return ["12"] if (row["role"], row["actual_role"]) == ("llm-generated", "human") else []
    return []


def _why_ours_only(kind: str, digest: str, ingested: Ingested) -> str:
    if kind == "OperationSpec":
        return "16: expression over constant axes"
    paths = {row["path"] for row in ingested["workloads"] if row["workload_digest"] == digest}
    if kind == "WorkloadCase" and all(path.startswith("workloads/") for path in paths):
        return "14: workload files are read"
    return "unexplained"


def test_every_published_object_is_equal(
    tallies: dict[str, Tally], capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\n{'kind':24}{'equal':>6}{'wrong':>6}  corrected beside, ours only (by rule)")
        for kind, tally in tallies.items():
            beside = [f"rule {rule} beside: {n}" for rule, n in tally.corrected_beside.items()]
            only = [f"rule {rule}: {n} more" for rule, n in tally.ours_only.items()]
            print(f"{kind:24}{tally.equal:6}{len(tally.wrong):6}  {'; '.join(beside + only)}")
    wrong = [text for tally in tallies.values() for text in tally.wrong]
    assert not wrong, "\n".join(wrong[:20])


def test_the_counts_are_those_of_the_public_index(tallies: dict[str, Tally]) -> None:
    assert {kind: tally.equal for kind, tally in tallies.items()} == {
        "SoftwareProject": 11,
        "OperationSpec": 353,
        "WorkloadCase": 265,
        "ImplementationRevision": 222,
        "BenchmarkProtocol": 1,
        "ExecutionEnvironment": 4,
        "BenchmarkRun": 381,
    }


def test_what_only_we_publish_has_a_documented_rule(tallies: dict[str, Tally]) -> None:
    only = {kind: set(tally.ours_only) for kind, tally in tallies.items() if tally.ours_only}
    assert only == {
        "OperationSpec": {"16: expression over constant axes"},
        "WorkloadCase": {"14: workload files are read"},
    }


def test_every_environment_and_ported_solution_has_its_correction_beside(
    tallies: dict[str, Tally],
) -> None:
    assert tallies["ExecutionEnvironment"].corrected_beside == {"3": 4}
    assert tallies["ImplementationRevision"].corrected_beside == {"12": 7}


def test_workloads_of_one_digest_have_fingerprints_that_tell_them_apart(
    flashinfer_trace: Ingested, golden: Path
) -> None:
    report = json.loads((golden / "report.json").read_text())
    for shared in report["sameDigest"]:
        if shared["kind"] != "WorkloadCase":
            continue
        rows = [
            row
            for row in flashinfer_trace["workloads"]
            if row["workload_digest"] == shared["digest"]
        ]
        fingerprints = {row["external_id"]: row["input_fingerprint"] for row in rows}
        assert len({fingerprints[name] for name in shared["externalIds"]}) == len(
            shared["externalIds"]
        )


def test_operations_of_one_digest_keep_their_references_apart(
    flashinfer_trace: Ingested, golden: Path
) -> None:
    report = json.loads((golden / "report.json").read_text())
    references = {row["name"]: row["reference_digest"] for row in flashinfer_trace["operations"]}
    shared = [
        item["externalIds"] for item in report["sameDigest"] if item["kind"] == "OperationSpec"
    ]
    assert ["gemma_rmsnorm_h2048", "rmsnorm_h2048"] in shared
    for names in shared:
        assert len({references[name] for name in names}) == len(names)


def test_quarantine_holds_what_the_public_index_calls_ambiguous(
    flashinfer_trace: Ingested, golden: Path
) -> None:
    report = json.loads((golden / "report.json").read_text())
    expected = sorted(item["solution"] for item in report["ambiguities"])
    rows = [row for row in flashinfer_trace["quarantine"] if row["severity"] == "error"]
    assert {row["reason"] for row in rows} == {"UNKNOWN_SOLUTION"}
    assert sorted(json.loads(_line(golden, row))["solution"] for row in rows) == expected


def _line(golden: Path, row: Json) -> str:
    file = golden.parent / "flashinfer-trace" / row["path"]
    return file.read_text().split("\n")[row["line"] - 1]


def test_the_sums_of_the_corpus_add_up(flashinfer_trace: Ingested) -> None:
    flashinfer_trace.check_sums()
