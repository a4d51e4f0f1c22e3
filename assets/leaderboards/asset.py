"""The Dagster assets of the database: one per file under `sql/`, made in one step.

The specs, checks and dependencies come from the files; what is done is in `build.py`.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import dagster as dg

from assets.leaderboards.build import (
    UNIQUE_KEY,
    BrokenContractError,
    BuildProgress,
    CheckOutcome,
    DatabaseOutcome,
    TableOutcome,
    build_database,
)
from assets.leaderboards.catalog import PUBLISHED_PREFIX, ColumnSource, SqlTable, sql_catalog
from assets.leaderboards.site.table_plots import table_plots
from assets.leaderboards.sql_file import Severity
from assets.tables.warehouse import Warehouse
from assets.traces.untrusted_text import markdown

PUBLICATION = dg.AssetKey("publication")
"""The asset that brings the `published_` tables."""

WAREHOUSE_POOL = "warehouse"
_CELL_LENGTH = 60


class WarehouseSource(Protocol):
    """The resource that opens the warehouse."""

    def open(self) -> Warehouse:
        """The warehouse, ready for writing."""


def database_assets(
    catalog: Sequence[SqlTable] | None = None,
    published_by: Sequence[dg.AssetKey] = (PUBLICATION,),
) -> dg.AssetsDefinition:
    """One asset per table of the catalog (default: the project's files).

    `published_by` are the assets that bring rows to the `published_` tables.
    """
    tables = tuple(sql_catalog() if catalog is None else catalog)

    @dg.multi_asset(
        name="database",
        specs=[_spec(table, published_by) for table in tables],
        check_specs=[check for table in tables for check in _check_specs(table)],
        pool=WAREHOUSE_POOL,
    )
    def database(
        context: dg.AssetExecutionContext, warehouse: dg.ResourceParam[WarehouseSource]
    ) -> Iterator[dg.MaterializeResult[object] | dg.AssetCheckResult]:
        """Builds the database beside the old one and swaps it in whole."""
        opened = warehouse.open()
        try:
            outcome = build_database(
                opened,
                lambda step: context.log.info(_progress(step)),
                tables,
            )
        except BrokenContractError as error:
            yield from _all_checks(error.outcome)
            raise dg.Failure(error.message, allow_retries=False) from error
        plots = table_plots(opened) if catalog is None else {}
        for built in outcome.tables:
            name = built.table.name
            yield _materialization(built, plots.get(name))
        yield from _all_checks(outcome)

    return database


def asset_key(table: str) -> dg.AssetKey:
    """The asset of a table; `PUBLICATION` stands for everything published."""
    return PUBLICATION if table.startswith(PUBLISHED_PREFIX) else dg.AssetKey(table)


def _spec(table: SqlTable, published_by: Sequence[dg.AssetKey]) -> dg.AssetSpec:
    file = table.file
    deps: list[dg.AssetKey] = []
    for name in table.reads:
        key = asset_key(name)
        deps += published_by if key == PUBLICATION else [key]
    return dg.AssetSpec(
        dg.AssetKey(file.name),
        deps=list(dict.fromkeys(deps)),
        description=file.documentation,
        group_name="tables" if file.folder == "tables" else "leaderboards",
        kinds={"duckdb", "sql"},
        owners=["team:index"],
        code_version=file.code_version,
        metadata={"sql": dg.MetadataValue.md(f"`{file.path}`\n\n```sql\n{file.text}```")},
    )


def _check_specs(table: SqlTable) -> Iterator[dg.AssetCheckSpec]:
    file = table.file
    if file.is_view:
        return
    yield dg.AssetCheckSpec(
        UNIQUE_KEY,
        asset=file.name,
        description=f"no two rows share {', '.join(file.key)}",
        blocking=True,
    )
    for assertion in file.assertions:
        yield dg.AssetCheckSpec(
            assertion.name,
            asset=file.name,
            description=f"`{assertion.expression}` for every row",
            blocking=assertion.severity is Severity.ERROR,
        )


def _progress(step: BuildProgress) -> str:
    rows = "a view" if step.rows is None else f"{step.rows:,} rows"
    return f"{step.done} of {step.total}: {step.name}, {rows}"


def _materialization(built: TableOutcome, plots: str | None) -> dg.MaterializeResult[object]:
    schema = dg.TableSchema(
        columns=[dg.TableColumn(column.name, column.type, column.text) for column in built.columns]
    )
    metadata: dict[str, dg.MetadataValue] = {
        "dagster/column_schema": dg.MetadataValue.table_schema(schema),
        "dagster/column_lineage": dg.MetadataValue.column_lineage(_lineage(built.table)),
        "seconds": dg.MetadataValue.float(round(built.seconds, 3)),
    }
    if built.rows is not None:
        metadata["dagster/row_count"] = dg.MetadataValue.int(built.rows)
        metadata["sample"] = dg.MetadataValue.md(_markdown(built))
    if plots is not None:
        metadata["plots"] = dg.MetadataValue.md(plots)
    return dg.MaterializeResult(asset_key=dg.AssetKey(built.table.name), metadata=metadata)


def _lineage(table: SqlTable) -> dg.TableColumnLineage:
    return dg.TableColumnLineage(
        {
            column: [_column_dep(source) for source in found]
            for column, found in table.lineage().items()
        }
    )


def _column_dep(source: ColumnSource) -> dg.TableColumnDep:
    # The publication is many tables in one asset, so its columns are named with their table.
    key = asset_key(source.table)
    published = source.table.removeprefix(PUBLISHED_PREFIX)
    column = f"{published}.{source.column}" if key == PUBLICATION else source.column
    return dg.TableColumnDep(key, column)


def _all_checks(outcome: DatabaseOutcome) -> Iterator[dg.AssetCheckResult]:
    for built in outcome.tables:
        for check in built.checks:
            yield _check_result(built, check)


def _check_result(built: TableOutcome, check: CheckOutcome) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=dg.AssetKey(built.table.name),
        check_name=check.name,
        passed=check.passed,
        severity=dg.AssetCheckSeverity.ERROR
        if check.severity is Severity.ERROR
        else dg.AssetCheckSeverity.WARN,
        metadata={
            "failing": check.failing,
            "examples": [[str(value) for value in row] for row in check.examples],
        },
    )


def _markdown(built: TableOutcome) -> str:
    names = [column.name for column in built.columns]
    lines = [names, ["---"] * len(names)]
    lines += [[_cell(value) for value in row] for row in built.sample]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    text = "" if value is None else " ".join(str(value).split())
    return markdown(text if len(text) <= _CELL_LENGTH else f"{text[: _CELL_LENGTH - 1]}…")
