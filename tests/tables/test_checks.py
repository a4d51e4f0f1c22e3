"""The asset checks of `publication` pass on what is whole and fail on what is not."""

from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.tables.checks import publication_rules
from assets.tables.warehouse import Warehouse


class OpenWarehouse(dg.ConfigurableResource):
    """Opens a warehouse folder."""

    root: str

    def open(self) -> Warehouse:
        """The warehouse."""
        return Warehouse(Path(self.root))


def evaluate(root: Path) -> dict[str, bool]:
    definitions = dg.Definitions(
        assets=[dg.AssetSpec("publication")],
        asset_checks=[publication_rules],
        jobs=[dg.define_asset_job("checks", selection=dg.AssetSelection.all_asset_checks())],
        resources={"warehouse": OpenWarehouse(root=str(root))},
    )
    result = definitions.resolve_job_def("checks").execute_in_process()
    return {check.check_name: check.passed for check in result.get_asset_check_evaluations()}


def test_a_whole_publication_passes_every_rule(sample_warehouse: Path) -> None:
    passed = evaluate(sample_warehouse)
    assert set(passed) == {
        "wrong_digest",
        "wrong_column",
        "broken_reference",
        "mixed_group",
        "unconcluded_license",
    }
    assert all(passed.values())


@pytest.mark.parametrize("column", ["canonical_json", "primary_value"])
def test_a_changed_row_of_the_newest_publication_fails_its_rule(
    warehouse_copy: Path, column: str
) -> None:
    path = Path(Warehouse(warehouse_copy).files("runs")[-1])
    stored = pq.read_table(path)
    rows = stored.to_pylist()
    rows[0][column] = "{}" if column == "canonical_json" else 1
    pq.write_table(pa.Table.from_pylist(rows, schema=stored.schema), path)
    passed = evaluate(warehouse_copy)
    assert passed["wrong_digest"] is (column != "canonical_json")
    assert passed["wrong_column"] is False
    assert passed["mixed_group"] is True


def test_the_ingest_job_runs_them() -> None:
    from pipelines.definitions import build_definitions
    from pipelines.jobs import INGEST
    from pipelines.settings import Settings

    definitions = build_definitions(Settings(Path("w"), Path("d"), "sample"))
    job = definitions.resolve_job_def(INGEST)
    assert "publication_rules" in {node.name for node in job.graph.nodes}
