"""The site in a real browser, read from the disk: what people come for, and that all can use it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.leaderboards.site import addresses
from assets.tables.reader import open_database
from tests.leaderboards.site.browser import Browser, started
from tests.leaderboards.site.sites import Site

pytestmark = pytest.mark.integration

_NARROW = 360
_SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """A wide, light browser; a test fails where the console complained or something was fetched."""
    chromium.width(1280)
    chromium.scheme("light")
    chromium.requested()
    chromium.complaints()
    yield chromium
    assert chromium.complaints() == []
    assert [url for url in chromium.requested() if not url.startswith(("file:", "data:"))] == []


def one(site: Site, sql: str) -> tuple:
    with open_database(site.warehouse.root) as connection:
        [row] = connection.execute(sql).fetchall()
    return row


def operation_page(site: Site, name: str) -> str:
    (digest,) = one(site, f"select operation_digest from operations where name = '{name}'")
    return addresses.operation(digest)


def test_find_the_best_kernel_for_my_shape(browser: Browser, sample_site: Site) -> None:
    size, best = one(
        sample_site,
        """
        select workloads.axes_json::json ->> 'm', arg_min(solution_name, primary_value)
        from runs inner join workloads using (workload_digest)
        where definition_name = 'gemm_n128_k2048' and status = 'passed'
        group by all order by 1 desc limit 1
        """,
    )
    browser.open(sample_site.root, "index.html")
    browser.type("#home-search", "gemm_n128")
    browser.find(".big-search button").click()
    browser.until(lambda: browser.all("#search-results a"))
    browser.find("#search-results a").click()
    browser.type("input[name=m]", size)
    [row] = browser.shown("#shapes tbody tr")
    assert best in row.text
    assert f"m={size}" in browser.driver.current_url
    assert "exactly this shape" in browser.text("form[data-shapes] output")
    row.find_element("partial link text", "ranking").click()
    assert f"m={size}" in browser.text("h1")
    assert best in browser.text("section[aria-labelledby=ranking] tbody tr")


def test_a_shape_that_nobody_measured_shows_the_nearest(
    browser: Browser, sample_site: Site
) -> None:
    browser.open(sample_site.root, operation_page(sample_site, "gemm_n128_k2048") + "?m=951")
    assert "Nothing of exactly this shape" in browser.text("form[data-shapes] output")
    rows = browser.shown("#shapes tbody tr")
    assert "near" in rows[0].get_attribute("class")
    assert "952" in [row.text.split()[0] for row in rows]


def test_is_this_number_to_be_trusted(browser: Browser, sample_site: Site) -> None:
    digest, code, explanation = one(
        sample_site,
        """
        select run_digest, code, explanation from caveats inner join caveat_codes using (code)
        inner join ranked_runs using (run_digest)
        where code = 'LOOSE_TOLERANCE' order by run_digest limit 1
        """,
    )
    browser.open(sample_site.root, addresses.run(digest))
    trust = browser.text(".trust")
    assert "passed" in trust
    assert "the source says so; not measured again" in trust
    assert explanation in trust
    browser.find(".trust a.caveat").click()
    assert browser.driver.current_url.endswith(f"methodology/index.html#{code}")
    assert explanation in browser.find(f"#{code}").text


def test_compare_two(browser: Browser, sample_site: Site) -> None:
    digest, value, record = one(
        sample_site,
        """
        select run_digest, primary_value, record_value from run_dossiers
        where rank = 2 order by run_digest limit 1
        """,
    )
    browser.open(sample_site.root, addresses.run(digest))
    browser.find("main").find_element("link text", "Compare with #1").click()
    browser.until(lambda: browser.all("#comparison table"))
    assert f"A is {value / record:.2f}x as fast as B." in browser.text("#comparison")
    address = browser.driver.current_url
    assert addresses.identifier(digest) in address
    last = browser.all("select[name=b] option")[-1]
    last.click()
    assert last.get_attribute("value") in browser.driver.current_url
    browser.driver.get("about:blank")
    browser.driver.get(address)
    assert f"A is {value / record:.2f}x as fast as B." in browser.text("#comparison")


def test_cite_it(browser: Browser, sample_site: Site) -> None:
    digest, external_id = one(
        sample_site, "select run_digest, external_id from runs order by run_digest limit 1"
    )
    browser.open(sample_site.root, addresses.run(digest))
    citation = browser.text("#citation")
    assert digest in citation
    assert external_id in citation
    today = browser.script("return new Date().toISOString().slice(0, 10)")
    assert citation.endswith(f"(accessed {today}).")


def test_what_failed(browser: Browser, sample_site: Site) -> None:
    failed, status = one(
        sample_site,
        """
        select count(*), status from runs
        where status <> 'passed' group by status order by 1 desc, 2 limit 1
        """,
    )
    browser.open(sample_site.root, "runs/index.html")
    browser.choose("select[name=status]", status)
    browser.until(lambda: browser.text("form output") == f"{failed} runs")
    assert f"status={status}" in browser.driver.current_url
    assert len(browser.all("#found-runs tbody tr")) == failed
    browser.find("#found-runs tbody a").click()
    assert "Not ranked" in browser.text(".primary")
    browser.find(".crumbs").find_elements("css selector", "a")[-1].click()
    assert status.replace("_", " ") in browser.text("section[aria-labelledby=failures]")


def test_a_link_with_filters_shows_what_its_sender_saw(browser: Browser, sample_site: Site) -> None:
    (number,) = one(
        sample_site,
        "select count(*) from runs where status = 'passed' and author_directory = 'baseline'",
    )
    browser.open(sample_site.root, "runs/index.html?status=passed&author=baseline")
    browser.until(lambda: browser.text("form output") == f"{number} runs")
    browser.open(sample_site.root, "operations/index.html?family=gemm")
    assert [row.text.split()[0] for row in browser.shown("#operations tbody tr")] == [
        "gemm_n128_k2048"
    ]


def test_a_table_is_sorted_by_its_heads(browser: Browser, sample_site: Site) -> None:
    browser.open(sample_site.root, operation_page(sample_site, "gemm_n128_k2048"))
    head = browser.find("#shapes th:nth-child(4)")
    for order in ("ascending", "descending"):
        head.find_element("css selector", "button").click()
        values = [
            float(cell.get_attribute("data-value"))
            for cell in browser.all("#shapes tbody td:nth-of-type(4)")
        ]
        assert head.get_attribute("aria-sort") == order
        assert values == sorted(values, reverse=order == "descending")
        assert len(set(values)) > 1


def test_the_keyboard_is_enough(browser: Browser, sample_site: Site) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(sample_site.root, "operations/index.html")
    browser.find("body").send_keys(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Skip to the content"
    browser.press(Keys.ENTER)
    browser.press(Keys.TAB)
    assert browser.driver.switch_to.active_element.get_attribute("name") == "q"
    browser.press("rmsnorm_h128")
    [row] = browser.shown("#operations tbody tr")
    row.find_element("css selector", "a").send_keys(Keys.ENTER)
    assert browser.text("h1") == "rmsnorm_h128"


def test_markup_of_a_dataset_does_not_run(browser: Browser, hostile_site: Site) -> None:
    for path in hostile_site.pages():
        browser.open(hostile_site.root, str(path.relative_to(hostile_site.root)))
        assert browser.script("return window.pwned") is None, path
        assert browser.all("main img") == [], path
    browser.open(hostile_site.root, "search.html?q=good")
    browser.until(lambda: browser.all("#search-results a"))
    browser.open(hostile_site.root, "runs/index.html")
    browser.until(lambda: browser.all("#found-runs tbody tr"))
    assert browser.script("return window.pwned") is None
    assert browser.all("img") == []


def kinds_of_pages(site: Site) -> list[str]:
    """One page of each kind, and those that there is one of."""
    singles = ["index.html", "search.html", "operations/index.html", "runs/index.html"]
    singles += ["implementations/index.html", "authors/index.html", "gpus/index.html"]
    singles += ["quarantine/index.html", "methodology/index.html"]
    for folder in ("operations", "groups", "runs", "implementations", "authors", "artifacts"):
        pages = sorted((site.root / folder).glob("*.html"), key=lambda path: -path.stat().st_size)
        singles.append(f"{folder}/{next(p.name for p in pages if p.name != 'index.html')}")
    return singles


@pytest.mark.parametrize("site_name", ["sample_site", "hostile_site"])
def test_pages_fit_a_narrow_screen(
    browser: Browser, site_name: str, request: pytest.FixtureRequest
) -> None:
    site = request.getfixturevalue(site_name)
    browser.width(_NARROW)
    for address in kinds_of_pages(site):
        browser.open(site.root, address)
        width = browser.script("return document.documentElement.scrollWidth")
        assert width <= _NARROW, address


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from the npm registry that this machine is set up for."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm to fetch axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), "axe-core@4"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("axe-core could not be fetched within 60 s")
    if done.returncode != 0:
        pytest.skip(f"axe-core could not be fetched: {done.stderr.strip()[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Browser, sample_site: Site, axe: str, scheme: str
) -> None:
    browser.scheme(scheme)
    found = []
    for address in kinds_of_pages(sample_site):
        browser.open(sample_site.root, address)
        browser.script(axe)
        result = browser.driver.execute_async_script(
            "const done = arguments[0];"
            "axe.run({preload: false}).then(done, (error) => done(String(error)));"
        )
        assert isinstance(result, dict), (address, result)
        assert result["passes"], address
        found += [
            (address, violation["id"], violation["nodes"][0]["html"][:200])
            for violation in result["violations"]
            if violation["impact"] in _SERIOUS
        ]
    assert found == []


def test_screenshots(browser: Browser, sample_site: Site, tmp_path: Path) -> None:
    """Those of `docs/images/` where KERNELINDEX_SCREENSHOTS names that folder."""
    folder = Path(os.environ.get("KERNELINDEX_SCREENSHOTS", tmp_path))
    (run,) = one(
        sample_site,
        """
        select run_digest from run_dossiers
        where operation = 'gqa_paged_decode_h32_kv4_d128_ps1' and rank = 2
        order by run_digest limit 1
        """,
    )
    (group,) = one(sample_site, f"select strict_group from runs where run_digest = '{run}'")
    operation = operation_page(sample_site, "gqa_paged_decode_h32_kv4_d128_ps1")
    for name, address, height in (
        ("site-home", "index.html", 900),
        ("site-operation", operation, 1250),
        ("site-group", addresses.group(group), 1050),
        ("site-run", addresses.run(run), 1150),
    ):
        browser.width(1280, height)
        browser.open(sample_site.root, address)
        picture = folder / f"{name}.png"
        browser.screenshot(picture)
        assert picture.read_bytes().startswith(b"\x89PNG")
