from pathlib import Path

import pytest

from assets.leaderboards.catalog import ColumnSource, read_catalog, sql_catalog
from assets.leaderboards.sql_file import SqlContractError, read_sql_file

GOOD = """-- kept: one row per run that is kept
-- key: run_digest
-- column run_digest: the run
-- column latency_us: latency, in microseconds
-- assert positive: latency_us > 0
select
    run_digest,
    primary_value / 1000 as latency_us
from published_runs
"""


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "tables/kept.sql", GOOD)
    return tmp_path


def error_of(root: Path) -> str:
    with pytest.raises(SqlContractError) as caught:
        read_catalog(root)
    return str(caught.value)


def test_a_file_becomes_a_table_with_its_documentation(root):
    [table] = read_catalog(root)
    file = table.file
    assert (file.name, file.description, file.key) == (
        "kept",
        "one row per run that is kept",
        ("run_digest",),
    )
    assert [(column.name, column.text) for column in file.columns] == [
        ("run_digest", "the run"),
        ("latency_us", "latency, in microseconds"),
    ]
    assert table.reads == ("published_runs",)
    assert table.lineage()["latency_us"] == [ColumnSource("published_runs", "primary_value")]


def test_an_entry_may_go_on_in_the_next_line(root):
    longer = GOOD.replace("in microseconds", "in\n--     microseconds,\n--     always")
    write(root, "tables/kept.sql", longer)
    [table] = read_catalog(root)
    assert table.file.columns[1].text == "latency, in microseconds, always"


def test_tables_come_after_what_they_read_whatever_their_names_and_folders(root):
    write(
        root,
        "leaderboards/a_first.sql",
        "-- a_first: one row per run\n-- formula: v1\n-- key: run_digest\n"
        "-- column run_digest: the run\nselect run_digest from kept\n",
    )
    assert [table.name for table in read_catalog(root)] == ["kept", "a_first"]


def test_a_common_table_expression_may_be_named_like_a_table(root):
    write(
        root,
        "tables/other.sql",
        "-- other: one row per run\n-- key: run_digest\n-- column run_digest: the run\n"
        "with kept as (select run_digest from published_runs)\nselect run_digest from kept\n",
    )
    by_name = {table.name: table.reads for table in read_catalog(root)}
    assert by_name["other"] == ("published_runs",)


@pytest.mark.parametrize(
    ("change", "with_", "line", "message"),
    [
        ("-- kept: one row per run that is kept\n", "", 1, "the header is missing"),
        ("-- kept:", "-- held:", 1, "the header names held, the file is kept"),
        ("-- key: run_digest\n", "", 1, "no `-- key:`"),
        ("-- key: run_digest", "-- key: other", 1, "key column other is not documented"),
        ("-- key: run_digest", "-- keys: run_digest", 2, "unknown header entry `keys`"),
        ("-- key: run_digest", "-- whatever", 2, "not a header entry"),
        ("-- column latency_us: latency, in microseconds\n", "", 7, "column latency_us is not in"),
        ("    run_digest,\n", "", 3, "documents run_digest, the SELECT has none"),
        ("-- column latency_us:", "-- column run_digest:", 4, "run_digest is documented twice"),
        ("published_runs", "published_walks", 9, "there is no table published_walks"),
        ("primary_value", "primary_values", 8, "primary_values"),
        ("latency_us > 0", "latency_ms > 0", 5, "assertion positive"),
        ("latency_us > 0", "latency_us >", 5, "assertion positive"),
        ("from published_runs", "from published_runs;\nselect 1", 1, "2 statements"),
        ("from published_runs", "from published_runs where (", 9, "not SQL"),
        ("select\n", "select *,\n", 6, "the outer select has a `*`"),
        ("select\n", "delete from x where (\n", 9, "not SQL"),
    ],
)
def test_a_header_or_select_that_lies_fails_with_file_and_line(root, change, with_, line, message):
    assert change in GOOD
    write(root, "tables/kept.sql", GOOD.replace(change, with_))
    found = error_of(root)
    assert found.startswith(f"sql/tables/kept.sql:{line}: ")
    assert message in found


@pytest.mark.parametrize(
    "aggregate",
    [
        "avg(primary_value)",
        "exp(avg(ln(primary_value)))",
        "sum(primary_value)",
        "stddev_samp(primary_value)",
        "geomean(primary_value)",
        "list(primary_value)",
        "list_avg(list(primary_value))",
        "string_agg(primary_value, ', ')",
        "any_value(primary_value)",
        "avg(primary_value) over (partition by run_digest)",
    ],
)
def test_an_aggregate_that_depends_on_the_order_of_rows_is_refused(root, aggregate):
    write(root, "tables/kept.sql", GOOD.replace("primary_value", aggregate))
    found = error_of(root)
    assert found.startswith("sql/tables/kept.sql:8: the result of ")
    assert "depends on the order of its rows" in found


@pytest.mark.parametrize(
    "aggregate",
    [
        "list_avg(list_sort(list(primary_value)))",
        "list_sort(list(primary_value) filter (where primary_value is not null))",
        "avg(primary_value order by primary_value)",
        "geomean(primary_value order by primary_value)",
        "list(distinct primary_value order by primary_value)",
        "sum(line)::bigint",
        "sum((primary_value > 1)::integer) over (order by run_digest)",
        "avg(primary_value) over (order by run_digest)",
        "median(primary_value)",
        "min(primary_value)",
    ],
)
def test_an_aggregate_that_does_not_is_taken(aggregate):
    text = GOOD.replace("primary_value", aggregate)
    assert read_sql_file("sql/tables/kept.sql", "tables", text).name == "kept"


def test_a_statement_that_is_no_select_is_refused(root):
    header = GOOD[: GOOD.index("select")]
    write(root, "tables/kept.sql", f"{header}drop table published_runs\n")
    assert "a drop; a file is one SELECT" in error_of(root)


def test_one_name_in_two_folders_is_refused(root):
    write(root, "rankings/kept.sql", GOOD.replace("-- key", "-- formula: v1\n-- key", 1))
    assert error_of(root) == "sql/rankings/kept.sql:1: table kept is already in sql/tables/kept.sql"


def test_a_view_asserts_nothing_because_it_is_not_read_when_it_is_made(root):
    write(root, "views/seen.sql", GOOD.replace("kept", "seen", 1))
    assert error_of(root).startswith("sql/views/seen.sql:5: a view is not read")


def test_a_circle_of_references_is_refused_with_its_members(root):
    for name, other in (("ping", "pong"), ("pong", "ping")):
        write(
            root,
            f"tables/{name}.sql",
            f"-- {name}: one row per run\n-- key: run_digest\n-- column run_digest: the run\n"
            f"select run_digest from {other}\n",
        )
    found = error_of(root)
    assert "read each other in a circle" in found
    assert "ping" in found
    assert "pong" in found


def test_rankings_and_leaderboards_name_their_formula(root):
    write(root, "rankings/ranked.sql", GOOD.replace("kept", "ranked", 1))
    assert "no `-- formula:`" in error_of(root)


def test_every_file_of_the_project_keeps_the_rules():
    tables = sql_catalog()
    names = {table.name for table in tables}
    assert {"runs", "ranked_runs", "record_events", "quarantine", "run_dossiers"} <= names
    for table in tables:
        sources = table.lineage()
        assert set(sources) == {column.name for column in table.file.columns}
    ranked = next(table for table in tables if table.name == "run_rank_facts")
    assert ColumnSource("run_facts", "primary_value") in ranked.lineage()["rank"]
