"""Our models of the manifest kinds allow what the published JSON Schemas allow."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from assets.manifests.kinds import SPECS, validate_document
from tests.builders import Ingested, Json

Validator = Callable[[Json], list[str]]
_DIGESTS = {"A": "sha256:" + "a" * 64, "B": "sha256:" + "b" * 64}


def schema_validator(corpus: Path, kind: str) -> Validator:
    """Messages of the published JSON Schema of a kind about a manifest."""
    file_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower()
    schema = json.loads((corpus / "schemas" / f"{file_name}.v1alpha1.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    return lambda document: [error.message for error in validator.iter_errors(document)]


@pytest.fixture(scope="module")
def validators(corpus: Path) -> dict[str, Validator]:
    return {kind: schema_validator(corpus, kind) for kind in SPECS}


@pytest.fixture(scope="module")
def manifests(golden: Path) -> list[Json]:
    objects = map(json.loads, (golden / "objects.jsonl").read_text().splitlines())
    return [item["manifest"] | {"digest": item["digest"]} for item in objects if "manifest" in item]


def test_golden_manifests_of_every_kind_are_valid_and_have_their_digest(
    manifests: list[Json], validators: dict[str, Validator]
) -> None:
    assert {manifest["kind"] for manifest in manifests} == SPECS.keys()
    for manifest in manifests:
        digest = manifest.pop("digest")
        assert validators[manifest["kind"]](manifest) == []
        read = validate_document(manifest)
        assert read.document() == manifest
        assert read.digest == digest


def test_everything_that_we_publish_is_valid(
    flashinfer_trace: Ingested, validators: dict[str, Validator]
) -> None:
    tables = (
        "projects",
        "operations",
        "workloads",
        "implementations",
        "protocols",
        "environments",
        "runs",
    )
    for table in tables:
        for row in flashinfer_trace[table]:
            document = json.loads(row["canonical_json"])
            document["metadata"] = json.loads(row["metadata_json"])
            assert validators[document["kind"]](document) == []
            assert validate_document(document).document() == document


RUN = {
    "apiVersion": "kernelindex.dev/v1alpha1",
    "kind": "BenchmarkRun",
    "metadata": {"name": "run"},
    "spec": {
        "implementationDigest": _DIGESTS["A"],
        "workloadDigest": _DIGESTS["A"],
        "protocolDigest": _DIGESTS["B"],
        "environmentDigest": _DIGESTS["B"],
        "status": "passed",
        "observedAt": "2025-10-21T13:37:42.930Z",
    },
}


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("spec", {"status": "fine"}),
        ("spec", {"observedAt": "2025-10-21"}),
        ("spec", {"workloadDigest": "sha256:abc"}),
        ("spec", {"unknown": 1}),
        ("spec", {"timing": {"primaryStatistic": "mean", "latencyNs": {"mean": 1.5}}}),
        ("spec", {"timing": {"primaryStatistic": "mean", "latencyNs": {"mean": -1}}}),
        ("spec", {"correctness": {"comparator": "x", "maximumAbsoluteError": -0.5}}),
        ("spec", {"sourceNative": {"source": "A b"}}),
        ("metadata", {"name": "Upper"}),
        ("metadata", {"name": ""}),
        ("metadata", {"title": "x" * 201}),
        ("metadata", {"description": "x" * 2001}),
        ("metadata", {"labels": {"Role": "x"}}),
    ],
)
def test_what_the_schema_forbids_is_forbidden(
    part: str, change: Json, validators: dict[str, Validator]
) -> None:
    assert validators["BenchmarkRun"](RUN) == []
    assert validate_document(RUN).document() == RUN
    changed = {**RUN, part: {**RUN[part], **change}}
    assert validators["BenchmarkRun"](changed)
    with pytest.raises(ValidationError):
        validate_document(changed)


def test_set_like_lists_are_sorted_by_code_unit_and_deduplicated() -> None:
    model = SPECS["ImplementationRevision"].model_fields["support"].annotation
    support = model(
        hardware_architectures=["unknown", "sm_90", "unknown"],
        products_tested=["\ufb33", "\U0001f600", "a"],
        dtypes=[],
    )
    assert support.hardware_architectures == ["sm_90", "unknown"]
    assert support.products_tested == ["a", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize("document", [{}, {**RUN, "kind": "Nothing"}, {**RUN, "apiVersion": "v2"}])
def test_another_kind_or_version_is_an_error(document: Json) -> None:
    with pytest.raises(ValueError, match=r"no .* manifest kind"):
        validate_document(document)
