"""Asset checks of `publication`: the rules of `sql/checks/`, after every ingestion."""

from collections.abc import Iterator

import dagster as dg
import duckdb

from assets.tables.asset import WarehouseProvider, publication
from assets.tables.errors import WarehouseError
from assets.tables.findings import Fault
from assets.tables.row_checks import CHECKS, OF_ONE_ROW, broken_rule


def _description(fault: Fault) -> str:
    scope = "the newest publication" if fault in OF_ONE_ROW else "all publications"
    return f"No rows of {scope} break the rule: {fault.explanation}"


@dg.multi_asset_check(
    name="publication_rules",
    specs=[
        dg.AssetCheckSpec(name, asset=publication.key, description=_description(fault))
        for fault, name in CHECKS.items()
    ],
    pool="warehouse",
)
def publication_rules(
    warehouse: dg.ResourceParam[WarehouseProvider],
) -> Iterator[dg.AssetCheckResult]:
    """Digests, references, groups and licences of what is published."""
    opened = warehouse.open()
    newest = opened.publications()[-1].publication_id
    for fault, name in CHECKS.items():
        try:
            findings = broken_rule(opened, fault, newest)
        except (duckdb.Error, WarehouseError) as error:
            raise dg.Failure(str(error).splitlines()[0], allow_retries=False) from error
        yield dg.AssetCheckResult(
            asset_key=publication.key,
            check_name=name,
            passed=not findings,
            metadata={
                "broken": sum(finding.count for finding in findings),
                "examples": [
                    f"{finding.where}: {example}"
                    for finding in findings
                    for example in finding.examples
                ],
            },
        )
