"""The odd cases come out as docs/conformance.md says, and every item of them is accounted for."""

from pathlib import Path

import pytest

from tests.builders import Ingested, Json
from tests.manifests.divergences import OddCaseRow, odd_case_rows, rules
from tests.manifests.odd_cases import Difference, OddCase, difference, ingest_case, load_odd_cases

# Columns that hold what the golden objects of a kind say, by the name they have there.
_COLUMNS = {
    "projects": {"slug": "slug"},
    "operations": {"slug": "slug", "externalId": "name"},
    "workloads": {
        "externalId": "external_id",
        "shapeSummary": "shape_summary",
        "dtypes": "dtypes",
        "layoutKeys": "layout_keys",
    },
    "implementations": {
        "slug": "slug",
        "externalId": "path",
        "projectSlug": "project_slug",
        "role": "role",
        "language": "language",
        "targetArchitectures": "target_architectures",
    },
    "runs": {
        "externalId": "external_id",
        "status": "status",
        "environmentKey": "environment_digest",
        "correctnessKey": "correctness_key",
        "metricKey": "metric_key",
        "comparisonKey": "comparison_key",
        "evidence": "evidence_level",
        "primaryValue": "primary_value",
        "hasRawEvidence": "has_raw_evidence",
        "observedAt": "observed_at",
        "environmentSummary": "environment.summary",
        "cudaMajor": "environment.cuda_major",
    },
}
_KINDS = {
    "projects": ("SoftwareProject", "project_digest"),
    "operations": ("OperationSpec", "operation_digest"),
    "workloads": ("WorkloadCase", "workload_digest"),
    "implementations": ("ImplementationRevision", "implementation_digest"),
    "runs": ("BenchmarkRun", "run_digest"),
}


@pytest.fixture(scope="module")
def ingested(
    golden: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[OddCase, Ingested]]:
    root = tmp_path_factory.mktemp("odd")
    revision, cases = load_odd_cases(golden)
    return {
        case.name: (case, ingest_case(case, revision, root / "cases" / str(number), root))
        for number, case in enumerate(cases)
    }


@pytest.fixture(scope="module")
def differences(ingested: dict[str, tuple[OddCase, Ingested]]) -> dict[str, Difference]:
    return {name: difference(case, ours) for name, (case, ours) in ingested.items()}


def test_every_divergence_is_a_row_of_the_document_and_every_row_a_divergence(
    ingested: dict[str, tuple[OddCase, Ingested]], differences: dict[str, Difference]
) -> None:
    documented = odd_case_rows()
    found = {
        name
        for name, (case, _) in ingested.items()
        if differences[name] or case.public_outcome != "publishes"
    }
    assert found - documented.keys() == set(), "not in docs/conformance.md"
    assert documented.keys() - found == set(), "in docs/conformance.md, but no divergence"
    assert len(ingested) == 199


def test_each_row_of_the_document_is_what_happens(
    ingested: dict[str, tuple[OddCase, Ingested]], differences: dict[str, Difference]
) -> None:
    def as_it_happens(row: OddCaseRow) -> tuple[str, str, str]:
        case = ingested[row.case][0]
        actual = differences[row.case]
        return case.public_outcome, actual.objects, actual.reasons

    rows = odd_case_rows().values()
    documented = {row.case: (row.public_index.split()[0], row.objects, row.reasons) for row in rows}
    assert documented == {row.case: as_it_happens(row) for row in rows}


def test_each_row_of_the_document_names_rules_that_it_states() -> None:
    for row in odd_case_rows().values():
        assert set(row.rules) <= rules(), row.case


def test_objects_that_both_publish_are_the_same(
    ingested: dict[str, tuple[OddCase, Ingested]],
) -> None:
    wrong = []
    for case, ours in ingested.values():
        for table, (kind, column) in _KINDS.items():
            by_digest: dict[str, list[Json]] = {}
            for row in ours[table]:
                by_digest.setdefault(row[column], []).append(row)
            for expected in case.outcome["objects"]:
                rows = by_digest.get(expected["digest"], []) if expected["kind"] == kind else []
                if rows and not any(_agrees(row, expected, table, ours) for row in rows):
                    wrong.append((case.name, expected, rows))
    assert not wrong, f"{len(wrong)} objects differ, the first: {wrong[0]}"


def _agrees(row: Json, expected: Json, table: str, ours: Ingested) -> bool:
    return all(
        _value(row, column, ours) == expected[name]
        for name, column in _COLUMNS[table].items()
        if name in expected
    )


def _value(row: Json, column: str, ours: Ingested) -> object:
    if column.startswith("environment."):
        return next(
            environment[column.partition(".")[2]]
            for environment in ours["environments"]
            if environment["environment_digest"] == row["environment_digest"]
        )
    if column == "observed_at":
        return f"{row[column].replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
    return row[column]


def test_every_item_is_accounted_for(ingested: dict[str, tuple[OddCase, Ingested]]) -> None:
    for name, (_, ours) in ingested.items():
        try:
            ours.check_sums()
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def test_every_refusal_names_file_line_path_and_excerpt(
    ingested: dict[str, tuple[OddCase, Ingested]],
) -> None:
    for name, (case, ours) in ingested.items():
        for row in ours["quarantine"]:
            assert row["path"] in case.files, name
            assert row["line"] >= 1, name
            assert row["json_path"].startswith("$"), name
            assert row["message"], name
            assert row["excerpt"], name
