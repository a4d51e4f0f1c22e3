"""What a build leaves out: the rows of publications that are set aside, and what rests on them.

A later publication holds only what was new, so its rows may name what a publication that is set
aside brought: a run without its implementation would be half a run. Such rows are left out too,
and `left_out` says how many of which publication. Projects, protocols and environments are
shared by everybody and stay, unless they are what breaks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from assets.tables.contracts import LEFT_OUT, PUBLISHED
from assets.tables.set_aside import SetAside
from assets.tables.warehouse import Publication

_SHARED = frozenset({"projects", "protocols", "environments"})

# The tables whose rows others name, each after those that it names itself, with its digest.
_NAMED = {
    "projects": "project_digest",
    "protocols": "protocol_digest",
    "environments": "environment_digest",
    "operations": "operation_digest",
    "workloads": "workload_digest",
    "implementations": "implementation_digest",
    "runs": "run_digest",
}
# By table, the columns that name rows of another. Corrections may name what is not there.
_NAMES = {
    "workloads": {"operation_digest": "operations"},
    "implementations": {"operation_digest": "operations", "project_digest": "projects"},
    "runs": {
        "operation_digest": "operations",
        "workload_digest": "workloads",
        "implementation_digest": "implementations",
        "protocol_digest": "protocols",
        "environment_digest": "environments",
    },
    "measurements": {"run_digest": "runs"},
    "rerun_samples": {"run_digest": "runs"},
    "reproductions": {"run_digest": "runs", "reproduces_digest": "runs"},
}

Relation = duckdb.DuckDBPyRelation


@dataclass(frozen=True)
class Kept:
    """The rows of every table that stay, and the rows of `published_left_out`."""

    tables: dict[str, Relation]
    left_out: pa.Table


def everything(rows: dict[str, Relation]) -> Kept:
    """All rows."""
    return Kept(rows, LEFT_OUT.empty_table())


def without(
    connection: duckdb.DuckDBPyConnection,
    rows: dict[str, Relation],
    publications: list[Publication],
    omitted: Mapping[str, SetAside],
) -> Kept:
    """All rows but those of some publications, and those that name a row which is then missing."""
    kept: dict[str, Relation] = {}
    order = [*_NAMED, *(table for table in PUBLISHED if table not in _NAMED)]
    for table in order:
        left = _of_others(rows[table], table, omitted)
        for column, named in _NAMES.get(table, {}).items():
            missing = connection.table(_missing(named)).project(f"digest as {column}")
            left = left.set_alias("named").join(missing.set_alias("missing"), column, how="anti")
        kept[table] = left
        if digest := _NAMED.get(table):
            present = left.project(f"{digest} as digest")
            gone = rows[table].project(f"{digest} as digest").distinct()
            missing = gone.set_alias("named").join(present.set_alias("kept"), "digest", how="anti")
            missing.create(_missing(table))
    return Kept(kept, _left_out(kept, publications, omitted))


def _missing(table: str) -> str:
    return f"missing_{table}"


def _of_others(rows: Relation, table: str, omitted: Mapping[str, SetAside]) -> Relation:
    whole = [
        duckdb.ConstantExpression(publication_id)
        for publication_id, entry in omitted.items()
        if entry.whole or table not in _SHARED
    ]
    return rows.filter(duckdb.ColumnExpression("publication_id").isnotin(*whole)) if whole else rows


def _left_out(
    kept: Mapping[str, Relation],
    publications: list[Publication],
    omitted: Mapping[str, SetAside],
) -> pa.Table:
    """One row for each publication of which not everything is kept, set aside or not."""
    counts = {
        table: dict(rows.aggregate("publication_id, count(*)", "publication_id").fetchall())
        for table, rows in kept.items()
    }
    found = []
    for publication in publications:
        name = publication.publication_id
        lost = {
            table: published.rows - int(counts[table].get(name, 0))
            for table, published in publication.tables.items()
        }
        entry = omitted.get(name)
        if entry is None and not any(lost.values()):
            continue
        found.append(
            {
                "publication_id": name,
                "published_at": publication.published_at.replace(tzinfo=None),
                "kind": publication.kind,
                "dataset": publication.dataset,
                "revision": publication.revision,
                "set_aside_at": entry.at.replace(tzinfo=None) if entry else None,
                "statement": entry.statement if entry else None,
                "error": entry.error if entry else None,
                "left_out_runs": lost.get("runs", 0),
                "left_out_rows": sum(lost.values()),
            }
        )
    return pa.Table.from_pylist(found, schema=LEFT_OUT)
