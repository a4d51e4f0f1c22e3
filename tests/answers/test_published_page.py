"""The dossier of a run says what its published page says."""

import json
from pathlib import Path

import pytest

from assets.answers.dossiers import dossier
from assets.answers.lookup import Kind, find
from assets.answers.stored import shown_manifest
from assets.tables.reader import open_database
from assets.tables.warehouse import Warehouse
from tests.builders import PUBLIC
from tests.warehouses import ingest_into

REVISION = "da915083d4c7c5e61aa3005e3d17ae488e0fc71c"
RUN = "3ccbed69361cadec2cf61fb"


@pytest.fixture(scope="module")
def page(shared: Path) -> str:
    return (shared / "seeds" / "run-01a02032-gqa-ragged-prefill.txt").read_text()


@pytest.fixture(scope="module")
def warehouse(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    root = tmp_path_factory.mktemp("seeds") / "warehouse"
    dataset = str(shared / "seeds" / "flashinfer-trace")
    ingest_into(root, dataset=dataset, revision=REVISION, name=PUBLIC)
    return Warehouse(root)


def test_the_manifest_is_that_of_the_page(page: str, warehouse: Warehouse) -> None:
    with open_database(warehouse.root) as connection:
        found = find(connection, RUN)
    published, _ = json.JSONDecoder().raw_decode(page[page.index("{\n") :])
    assert found.kind is Kind.RUN
    assert shown_manifest(warehouse, found) == published


def test_every_field_of_the_page_is_in_the_dossier(page: str, warehouse: Warehouse) -> None:
    with open_database(warehouse.root) as connection:
        shown = dossier(connection, find(connection, RUN))
    fields = {label: value for section in shown.sections for label, value in section.fields}
    # Written on the page as label and value without anything between them.
    for label in (
        "implementation",
        "project",
        "revision",
        "external id",
        "comparator",
        "max absolute error",
        "max relative error",
        "total_q",
        "total_kv",
        "len_indptr",
        "k",
        "q",
        "v",
        "kv_indptr",
        "qo_indptr",
        "definition comparator",
        "harness",
        "timer",
        "primaryStatistic",
        "correctnessReference",
        "comparabilityFamily",
        "cudaToolkit",
        "framework",
    ):
        assert f"\n{label}{_as_on_page(label, fields[label])}\n" in page, label
    assert fields["comparison key"].startswith("sha256:5bb9526d874f4d83")
    assert fields["latency · mean"] == "129.3 µs"
    assert "32.55x reference" in " ".join(shown.headline)
    assert "observed 2025-10-20" in " ".join(shown.headline)


def _as_on_page(label: str, value: str) -> str:
    # The page writes a float in full, with digits beyond what identifies it.
    return "0.0000388553089578636" if label == "max relative error" else value
