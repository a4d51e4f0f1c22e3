"""The index that search and filters work with in the browser: small files, no server.

Each is JSON, and the same once more as a script, because a page that is opened from a disk may
load a script beside it and may not read a file.
"""

from assets.leaderboards.site import addresses
from assets.leaderboards.site.folder import SiteFolder
from assets.leaderboards.site.index_reader import IndexReader, Row
from assets.leaderboards.site.rendering import Renderer, script_json

_SEARCH = "data/search"
_ALL_AT_ONCE = 20_000

_ENTRIES = """
    select
        'operation' as kind,
        name,
        concat_ws(' ', family, array_to_string(list_filter(definition_names, lambda n: n <> name),
            ' '), array_to_string(input_dtypes, ' ')) as about,
        operation_digest as digest
    from operations

    union all

    select
        'implementation' as kind,
        solution_name as name,
        concat_ws(' ', definition_name, author_directory, language) as about,
        implementation_digest as digest
    from implementations

    union all

    select distinct
        'author' as kind,
        author_directory as name,
        '' as about,
        author_directory as digest
    from runs

    union all

    select distinct
        'GPU' as kind,
        gpu_product as name,
        gpu_architecture as about,
        gpu_product as digest
    from environments

    order by 1, 2, 4
"""

_RUNS = """
    select
        runs.run_digest,
        runs.operation_digest,
        runs.definition_name as operation,
        workloads.axes_label as workload,
        array_to_string(workloads.dtypes, ' ') as dtypes,
        runs.solution_name as solution,
        runs.author_directory as author,
        environments.gpu_product,
        runs.status,
        runs.evidence_level,
        runs.primary_value,
        ranked_runs.rank,
        ranked_runs.group_size
    from runs
    inner join workloads using (workload_digest)
    inner join environments using (environment_digest)
    left join ranked_runs using (run_digest)
    order by runs.definition_name, runs.operation_digest, runs.workload_digest,
        environments.gpu_product, ranked_runs.rank nulls last, runs.run_digest
"""

# Columns of a run in the index: texts that repeat are numbers into the list `words`.
_WORDS = (
    "operation",
    "workload",
    "dtypes",
    "solution",
    "author",
    "gpu_product",
    "status",
    "evidence_level",
)


def write_search(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> None:
    """Write the search page and its index."""
    entries = [
        [row["kind"], row["name"], row["about"], _target(row)] for row in reader.rows(_ENTRIES)
    ]
    _write_data(
        folder, _SEARCH, "search", {"columns": ["kind", "name", "about", "page"], "rows": entries}
    )
    folder.write(
        addresses.SEARCH,
        renderer.page(addresses.SEARCH, "search.html", data=f"{_SEARCH}.js"),
    )


def write_run_list(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> int:
    """Write the page on which runs are filtered, with one file of data per operation."""
    shards: list[Row] = []
    total = 0
    rows: list[Row] = []

    def end_of_operation() -> None:
        if rows:
            shards.append(_write_shard(folder, rows))
            rows.clear()

    for row in reader.stream(_RUNS):
        if rows and rows[-1]["operation_digest"] != row["operation_digest"]:
            end_of_operation()
        rows.append(row)
        total += 1
    end_of_operation()
    folder.write(
        addresses.RUNS,
        renderer.page(
            addresses.RUNS,
            "runs.html",
            shards=shards,
            total=total,
            loads_all=total <= _ALL_AT_ONCE,
            facets={
                name: [
                    item["value"]
                    for item in reader.rows(
                        f"select distinct {column} as value from runs "
                        "inner join environments using (environment_digest) order by all"
                    )
                ]
                for name, column in (
                    ("author", "runs.author_directory"),
                    ("gpu", "environments.gpu_product"),
                    ("status", "runs.status"),
                    ("evidence", "runs.evidence_level"),
                )
            },
            dtypes=[
                row["value"]
                for row in reader.rows(
                    "select distinct unnest(dtypes) as value from workloads order by all"
                )
            ],
        ),
    )
    return total


def _write_shard(folder: SiteFolder, rows: list[Row]) -> Row:
    words: dict[str, int] = {}

    def number(text: object) -> int:
        return words.setdefault(str(text or ""), len(words))

    plain = [
        [
            addresses.identifier(row["run_digest"]),
            *(number(row[name]) for name in _WORDS),
            row["primary_value"],
            row["rank"],
            row["group_size"],
        ]
        for row in rows
    ]
    name = f"data/runs-{addresses.identifier(rows[0]['operation_digest'])}"
    _write_data(
        folder,
        name,
        name.removeprefix("data/"),
        {
            "columns": ["run", *_WORDS, "latency_ns", "rank", "group_size"],
            "words": list(words),
            "rows": plain,
        },
    )
    return {
        "operation": rows[0]["operation"],
        "script": f"{name}.js",
        "name": name.removeprefix("data/"),
        "runs": len(rows),
    }


def _write_data(folder: SiteFolder, path: str, name: str, value: Row) -> None:
    text = script_json(value)
    folder.write(f"{path}.json", f"{text}\n")
    folder.write(f"{path}.js", f"kernelindex.receive({script_json(name)},{text});\n")


def _target(row: Row) -> str:
    makers = {
        "operation": addresses.operation,
        "implementation": addresses.implementation,
        "author": addresses.author,
        "GPU": addresses.gpu,
    }
    return makers[row["kind"]](row["digest"])
