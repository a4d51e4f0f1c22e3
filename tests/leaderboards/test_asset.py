import shutil
from importlib import resources
from pathlib import Path

import dagster as dg
import pytest

from assets.leaderboards.asset import database_assets
from assets.leaderboards.catalog import read_catalog
from assets.tables.set_aside import Change, record
from assets.tables.warehouse import Warehouse


class OpenWarehouse(dg.ConfigurableResource):
    """Opens a warehouse folder."""

    root: str

    def open(self) -> Warehouse:
        """The warehouse."""
        warehouse = Warehouse(Path(self.root))
        warehouse.prepare()
        return warehouse


@pytest.fixture
def resource(tmp_path: Path) -> OpenWarehouse:
    return OpenWarehouse(root=str(tmp_path / "warehouse"))


@dg.asset
def publication() -> None:
    """Stands for the asset that publishes."""


def small_catalog(folder: Path, *, smallest: int):
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "numbers.sql").write_text(
        f"""-- numbers: one row per number
-- key: n
-- column n: a number, in apples
-- column twice: two times n
-- assert large: n >= {smallest}
-- warn even: n % 2 = 0
select n, n * 2 as twice
from (values (1), (2), (3)) as given (n)
"""
    )
    return read_catalog(folder)


def test_all_files_become_assets_with_schema_lineage_and_passing_checks(resource):
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [publication, database_assets()], resources={"warehouse": resource}, instance=instance
        )
        assert result.success
        event = instance.get_latest_materialization_event(dg.AssetKey("run_rank_facts"))
    metadata = event.asset_materialization.metadata
    schema = metadata["dagster/column_schema"].value
    lineage = metadata["dagster/column_lineage"].value
    rank = next(column for column in schema.columns if column.name == "rank")
    assert (rank.type, rank.description) == (
        "BIGINT",
        "dense rank inside the comparison group, 1 is the fastest",
    )
    assert (
        dg.TableColumnDep(dg.AssetKey("run_conditions"), "comparison_number")
        in (lineage.deps_by_column["comparison_number"])
    )
    assert metadata["dagster/row_count"].value == 0
    assert all(check.passed for check in result.get_asset_check_evaluations())
    assert len(result.get_asset_check_evaluations()) > 20


def test_dependencies_come_from_the_sql():
    definition = database_assets()
    definitions = dg.Definitions(
        assets=[publication, definition], resources={"warehouse": OpenWarehouse(root="nowhere")}
    )
    graph = definitions.resolve_asset_graph()
    runs = graph.get(dg.AssetKey("run_facts"))
    assert dg.AssetKey("publication") in runs.parent_keys
    assert dg.AssetKey("withdrawals") in runs.parent_keys
    assert dg.AssetKey("run_facts") in graph.get(dg.AssetKey("runs")).parent_keys
    assert dg.AssetKey("run_facts") in graph.get(dg.AssetKey("run_rank_facts")).parent_keys
    assert dg.AssetKey("run_rank_facts") in graph.get(dg.AssetKey("ranked_runs")).parent_keys
    assert (runs.group_name, runs.kinds, runs.owners) == (
        "tables",
        {"duckdb", "sql"},
        ["team:index"],
    )
    assert graph.get(dg.AssetKey("ranked_runs")).group_name == "leaderboards"


def test_a_failed_assertion_shows_as_a_failed_check_and_fails_the_run(tmp_path, resource):
    database = database_assets(small_catalog(tmp_path / "sql", smallest=2))
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [database],
            resources={"warehouse": resource},
            instance=instance,
            raise_on_error=False,
        )
    assert not result.success
    found = {check.check_name: check.passed for check in result.get_asset_check_evaluations()}
    assert found == {"unique_key": True, "large": False, "even": False}
    assert not (tmp_path / "warehouse" / "kernelindex.duckdb").exists()


def test_a_failed_warning_is_shown_and_stops_nothing(tmp_path, resource):
    database = database_assets(small_catalog(tmp_path / "sql", smallest=1))
    result = dg.materialize([database], resources={"warehouse": resource})
    warned = next(c for c in result.get_asset_check_evaluations() if c.check_name == "even")
    assert (warned.passed, warned.severity) == (False, dg.AssetCheckSeverity.WARN)
    sample = result.asset_materializations_for_node("database")[0].metadata["sample"].value
    assert sample.splitlines()[:3] == ["| n | twice |", "| --- | --- |", "| 1 | 2 |"]


def test_what_is_left_out_is_a_failed_check_that_blocks_nothing(sample_warehouse, tmp_path):
    root = tmp_path / "warehouse"
    shutil.copytree(sample_warehouse, root)
    warehouse = Warehouse(root)
    record(warehouse, Change.SET_ASIDE, warehouse.publications()[2].publication_id)
    (tmp_path / "sql" / "tables").mkdir(parents=True)
    own = resources.files("sql").joinpath("tables", "left_out.sql").read_text()
    (tmp_path / "sql" / "tables" / "left_out.sql").write_text(own)
    result = dg.materialize(
        [publication, database_assets(read_catalog(tmp_path / "sql"))],
        resources={"warehouse": OpenWarehouse(root=str(root))},
    )
    assert result.success
    [check] = [item for item in result.get_asset_check_evaluations() if not item.passed]
    assert (check.check_name, check.severity) == ("complete", dg.AssetCheckSeverity.WARN)
    assert warehouse.publications()[2].publication_id in str(check.metadata["examples"].value)
