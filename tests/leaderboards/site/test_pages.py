"""What stands on the pages, and that they hold together."""

import csv
import json
import re

from assets.leaderboards.site import addresses
from assets.tables.reader import open_database
from tests.leaderboards.site.sites import Site

_FIRST_PAGE_BYTES = 150_000


def rows(site: Site, sql: str) -> list[tuple]:
    with open_database(site.warehouse.root) as connection:
        return connection.execute(sql).fetchall()


def test_every_link_leads_somewhere(sample_site: Site) -> None:
    assert sample_site.broken_links() == []


def test_no_page_loads_anything_from_elsewhere(sample_site: Site) -> None:
    for path in sample_site.pages():
        page = sample_site.page(str(path.relative_to(sample_site.root)))
        for tag, attributes in page.elements:
            loaded = attributes.get("src") or (attributes.get("href") if tag == "link" else None)
            assert not str(loaded or "").startswith(("http", "//")), path
    script_and_style = (sample_site.root / "site.js").read_text() + (
        sample_site.root / "style.css"
    ).read_text()
    assert not re.search(r"https?://|@import|url\(", script_and_style)


def test_the_first_page_is_small(sample_site: Site) -> None:
    loaded = ("index.html", "style.css", "site.js")
    size = sum((sample_site.root / name).stat().st_size for name in loaded)
    assert size < _FIRST_PAGE_BYTES


def test_every_run_operation_and_implementation_has_its_page(sample_site: Site) -> None:
    for table, page_of in (
        ("run", addresses.run),
        ("operation", addresses.operation),
        ("implementation", addresses.implementation),
    ):
        for (digest,) in rows(sample_site, f"select {table}_digest from {table}s"):
            assert (sample_site.root / page_of(digest)).is_file(), digest
    for (group,) in rows(sample_site, "select distinct strict_group from runs"):
        assert (sample_site.root / addresses.group(group)).is_file(), group


def test_a_run_page_says_what_the_tables_say(sample_site: Site) -> None:
    [(digest, rank, size, gpu, source_digest)] = rows(
        sample_site,
        """
        select run_digest, rank, group_size, gpu_product, source_digest
        from run_dossiers where rank > 1 order by run_digest limit 1
        """,
    )
    text = sample_site.page(addresses.run(digest)).text
    for expected in (digest, f"Rank {rank} of {size}", gpu, source_digest, "Compare with #1"):
        assert expected in text


def test_the_json_beside_a_run_holds_its_manifest(sample_site: Site) -> None:
    [(digest,)] = rows(sample_site, "select min(run_digest) from runs")
    data = json.loads(
        (sample_site.root / addresses.run(digest).replace("html", "json")).read_text()
    )
    assert data["digest"] == digest
    assert data["manifest"]["run"]["kind"] == "BenchmarkRun"
    assert data["manifest"]["environment"]["kind"] == "ExecutionEnvironment"
    assert digest in data["citation"]["text"]


def test_the_csv_of_a_group_holds_all_its_runs(sample_site: Site) -> None:
    [(group, number)] = rows(
        sample_site,
        "select strict_group, count(*) from runs group by all order by 2 desc, 1 limit 1",
    )
    path = sample_site.root / addresses.group(group).replace("html", "csv")
    assert len(list(csv.DictReader(path.open()))) == number


def test_every_plot_names_unit_count_and_group(sample_site: Site) -> None:
    captions = 0
    for path in sample_site.pages():
        for caption in re.findall(r"<figcaption>(.*?)</figcaption>", path.read_text(), re.DOTALL):
            captions += 1
            assert re.search(r"µs|no unit", caption), caption
            assert re.search(r"\d+ (value|record|group|sample)", caption), caption
            assert " on NVIDIA H200" in caption
            assert "CSV</a>" in caption
    assert captions > 10


def test_the_plot_of_an_operation_states_its_numbers(sample_site: Site) -> None:
    [(digest,)] = rows(
        sample_site, "select operation_digest from operations where name = 'gemm_n128_k2048'"
    )
    [path] = sample_site.root.glob(addresses.operation(digest).replace(".html", "-latency-*.csv"))
    found = {
        (row["comparison_group"], row["solution"], int(row["median_ns"]))
        for row in csv.DictReader(path.open())
    }
    expected = rows(
        sample_site,
        f"""
        select strict_group, solution_name, median_ns
        from ranked_implementations inner join implementations using (implementation_digest)
        where operation_digest = '{digest}'
        """,
    )
    assert found == set(expected)


def test_identifiers_on_a_page_are_unique(sample_site: Site) -> None:
    for path in sample_site.pages():
        identifiers = sample_site.page(str(path.relative_to(sample_site.root))).identifiers
        assert len(identifiers) == len(set(identifiers)), path


def test_what_failed_is_told_with_its_reason(sample_site: Site) -> None:
    [(group, solution)] = rows(
        sample_site,
        """
        select strict_group, solution_name from runs
        where status = 'runtime_error' order by run_digest limit 1
        """,
    )
    text = sample_site.page(addresses.group(group)).text
    failed = text.partition("What failed")[2]
    assert solution in failed
    assert "the run did not pass: runtime error" in failed
