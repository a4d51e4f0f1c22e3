"""Measure rebuilding every derived table over synthetic runs.

    python bench/leaderboards.py --runs 1000000 --folder /some/empty/folder

Runs are made up, and ten times as many runs are ten times as much of everything else: an operation
has 20 workloads and 20 implementations, one by each author, and a workload has 30 runs in one of 6
environments. 70% passed, so that an implementation has 1.6 eligible runs in a group where it has
any. An index grows like that: by operations, workloads and solutions, while a definition keeps the
solutions that it has.

For comparison, an operation of the public dataset has 23 workloads on average and 48 at most, 5
solutions on average and 14 at most, and an implementation has 1.0 to 1.6 runs in a group: 1.04 in
the 387 traces of the public repositories, 1.26 in the 1,937 runs of the public catalog of
August 2026, 1.56 where agents tried again.

The runs are written as one publication, and the database is built from it. Processor seconds are
those of all threads together; on two free processors a build takes about half of them.
"""

import argparse
import json
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from assets.answers.dossiers import dossier
from assets.answers.lookup import find, find_operation, short
from assets.answers.resolution import resolve
from assets.answers.standings import standing
from assets.leaderboards.build import DatabaseOutcome, build_database
from assets.tables.contracts import STAGED
from assets.tables.publication import PublicationRequest, publish
from assets.tables.warehouse import Warehouse

_RUNS_PER_WORKLOAD = 30
_WORKLOADS_PER_OPERATION = 20
_AUTHORS = 20
_GPUS = ("NVIDIA B200", "NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB")

# Columns that matter to the derived tables; all others are null.
_GENERATORS = {
    "revisions": """
        select
            'synthetic' as dataset, repeat('a', 40) as revision, 'snapshot' as snapshot_id,
            timestamp '2026-06-01' as revision_at
    """,
    "source_files": """
        select
            'synthetic' as dataset, repeat('a', 40) as revision, '1' as parser_version,
            'traces/author_' || range // $operations || '/operation_' || range % $operations
                || '.jsonl' as path,
            sha256('file' || range) as file_digest, '' as inputs_digest
        from range($authors * $operations)
    """,
    "operations": """
        select
            'sha256:' || sha256('operation' || range) as operation_digest,
            'operation_' || range as name, 'family_' || range % 15 as family,
            'sha256:' || sha256('reference' || range) as reference_digest,
            '{"n":4096}' as constant_axes_json, ['m'] as variable_axes,
            '{"spec":{"outputs":[{"tensor":{"dtype":"bf16","shape":["m","n"]}}]}}'
                as canonical_json,
            'synthetic' as dataset
        from range($operations)
    """,
    "workloads": """
        select
            'sha256:' || sha256('workload' || range) as workload_digest,
            'sha256:' || sha256('operation' || range % $operations) as operation_digest,
            'uuid ' || range as external_id, 'operation_' || range % $operations as definition_name,
            'sha256:' || sha256('inputs' || range) as input_fingerprint,
            '{"m":' || range % 4096 || '}' as axes_json, 'm=' || range % 4096 as axes_label,
            ['bf16'] as dtypes,
            '{"spec":{"axes":{"m":' || range % 4096 || '},"correctness":{},'
                || '"tensors":{"x":{"dtype":"bf16","shape":[' || range % 4096 || ',4096]}}}}'
                as canonical_json,
            'synthetic' as dataset
        from range($workloads)
    """,
    "implementations": """
        select
            'sha256:' || sha256('implementation' || range) as implementation_digest,
            'sha256:' || sha256('operation' || range % $operations) as operation_digest,
            'sha256:' || sha256('project' || range // $operations) as project_digest,
            'solution_' || range as solution_name,
            'operation_' || range % $operations as definition_name,
            case when range < $operations then 'baseline'
                else 'author_' || range // $operations end as author_directory,
            'triton' as language, repeat('a', 40) as source_revision,
            sha256('content' || range) as content_digest,
            'synthetic' as dataset, 'solutions/' || range || '.json' as path
        from range($authors * $operations)
    """,
    "projects": """
        select
            'sha256:' || sha256('project' || range) as project_digest, 'author ' || range as name
        from range($authors)
    """,
    "protocols": """
        select
            'sha256:' || sha256('protocol') as protocol_digest, 'protocol' as name,
            'protocol' as title,
            '{}' as canonical_json
    """,
    "environments": """
        select
            'sha256:' || sha256('environment' || range) as environment_digest,
            list_extract($gpus, 1 + range % 4) as gpu_product, 'sm_100' as gpu_architecture,
            'environment ' || range as summary
        from range(6)
    """,
    "runs": """
        with drawn as (
            select
                range as number,
                hash(range) as draw,
                range % $workloads as workload,
                -- The implementation has to be of the workload's operation.
                range % $workloads % $operations + $operations * (hash(range, 1) % $authors)
                    as implementation
            from range($runs)
        ),

        judged as (
            select
                *,
                implementation % $operations as operation,
                implementation // $operations as author,
                draw % 10 < 7 as passed,
                workload % 6 as environment,
                10000 + (workload * 7919) % 1000000 + hash(number, 2) % 100000 as latency_ns
            from drawn
        )

        select
            'sha256:' || sha256('run' || number) as run_digest,
            'sha256:' || sha256('operation' || operation) as operation_digest,
            'sha256:' || sha256('workload' || workload) as workload_digest,
            'sha256:' || sha256('implementation' || implementation) as implementation_digest,
            'sha256:' || sha256('protocol') as protocol_digest,
            'sha256:' || sha256('environment' || environment) as environment_digest,
            'sha256:' || sha256('group' || workload || passed) as comparison_key,
            'sha256:' || sha256('correctness') as correctness_key,
            case when passed then 'latency:mean:ns' else 'none' end as metric_key,
            case when passed then 'passed' else 'runtime_error' end as status,
            'latency' as primary_metric, 'mean' as primary_statistic,
            case when passed then latency_ns end::bigint as primary_value, 'ns' as primary_unit,
            'reported' as evidence_level, false as has_raw_evidence, true as source_native,
            'flashinfer-bench' as source, 'trace/' || number as external_id,
            timestamp '2025-10-01' + to_seconds((draw % 20000000)::bigint) as observed_at,
            'operation_' || operation as definition_name,
            'solution_' || implementation as solution_name,
            case when author = 0 then 'baseline' else 'author_' || author end as author_directory,
            'uuid ' || workload as workload_uuid,
            'sha256:' || sha256('inputs' || workload) as input_fingerprint,
            'sha256:' || sha256('reference' || operation) as reference_digest,
            latency_ns / 1e6 as latency_ms, latency_ns / 1e5 as reference_latency_ms,
            10.0 as speedup_factor, draw % 1000 / 1e4 as max_relative_error,
            draw % 50 = 7 and not passed as not_measured,
            'synthetic' as dataset, repeat('a', 40) as revision,
            'traces/author_' || author || '/operation_' || operation || '.jsonl' as path,
            (number // $operations)::integer as line
        from judged
        order by operation_digest, comparison_key
    """,
    "measurements": """
        select
            run_digest, 'latency' as metric, 'mean' as statistic, 'ns' as unit,
            primary_value::double as value
        from read_parquet($made)
        where primary_value is not null
    """,
}


def make_warehouse(folder: Path, runs: int) -> Warehouse:
    """A warehouse with one publication of synthetic runs."""
    operations = max(1, runs // (_RUNS_PER_WORKLOAD * _WORKLOADS_PER_OPERATION))
    warehouse = Warehouse(folder)
    warehouse.prepare()
    staging = warehouse.staging("synthetic")
    with warehouse.connect("3GB") as connection:
        for table, query in _GENERATORS.items():
            path = staging / table / "part.parquet"
            path.parent.mkdir()
            values = {
                "runs": runs,
                "operations": operations,
                "workloads": operations * _WORKLOADS_PER_OPERATION,
                "authors": _AUTHORS,
                "gpus": list(_GPUS),
                "made": str(staging / "runs" / "part.parquet"),
            }
            used = {name: value for name, value in values.items() if f"${name}" in query}
            contract = f"contract_{table}"
            connection.from_arrow(STAGED[table].empty_table()).create(contract)
            generated = connection.sql(
                f"from {contract} union all by name ({query})", params=used or None
            )
            generated.write_parquet(str(path), compression="zstd")
    publish(warehouse, staging, PublicationRequest(kind="ingest", dataset="synthetic"))
    shutil.rmtree(staging)
    return warehouse


def measure_queries(warehouse: Warehouse) -> dict[str, float]:
    """Seconds of the answers that people ask for most, each on a fresh connection."""
    with duckdb.connect(str(warehouse.database), read_only=True) as connection:
        [(digest, operation)] = connection.sql(
            "select run_digest, definition_name from runs where status = 'passed' limit 1"
        ).fetchall()
    questions: dict[str, Callable[[duckdb.DuckDBPyConnection], object]] = {
        "top": lambda connection: standing(connection, find_operation(connection, operation)),
        "show": lambda connection: dossier(connection, find(connection, short(digest))),
        "resolve": lambda connection: resolve(
            connection, operation, {"m": 128}, dtype="bf16", gpu=_GPUS[0]
        ),
    }
    seconds = {}
    for name, ask in questions.items():
        with duckdb.connect(str(warehouse.database), read_only=True) as connection:
            started = time.monotonic()
            ask(connection)
            seconds[name] = round(time.monotonic() - started, 3)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--keep", action="store_true", help="keep the folder and use it again")
    arguments = parser.parse_args()
    if not (arguments.folder / "publications").exists():
        started = time.monotonic()
        make_warehouse(arguments.folder, arguments.runs)
        print(f"made {arguments.runs:,} runs in {time.monotonic() - started:.1f} s")
    warehouse = Warehouse(arguments.folder)
    before_s = time.process_time()
    outcome: DatabaseOutcome = build_database(warehouse)
    processor_s = time.process_time() - before_s
    for table in sorted(outcome.tables, key=lambda table: -table.seconds):
        print(f"{table.seconds:8.2f} s {table.rows or 0:>12,} rows  {table.table.name}")
    summary = {
        "runs": arguments.runs,
        "build_s": round(outcome.seconds, 1),
        "build_processor_s": round(processor_s, 1),
        "database_bytes": outcome.size_bytes,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "queries_s": measure_queries(warehouse),
    }
    print(json.dumps(summary))
    if not arguments.keep:
        shutil.rmtree(arguments.folder)


if __name__ == "__main__":
    main()
