"""Plots for the Dagster UI: pictures that stand alone, in Markdown."""

import base64
import re
from xml.etree import ElementTree

import pytest

from assets.leaderboards.site.figures import Figure, fast_p
from assets.leaderboards.site.table_plots import alone, markdown, table_plots
from tests.leaderboards.site.sites import MARKUP, Site

_SVG = "{http://www.w3.org/2000/svg}"


def curves(*authors: str, gpu_product: str = "NVIDIA H200") -> Figure:
    rows = {
        author: [
            {
                "p": p,
                "fast_p": share,
                "groups_compared": 4,
                "groups_of_baseline": 5,
                "coverage": 0.8,
            }
            for p, share in ((0.5, 1.0), (1.0, 0.5), (2.0, 0.25))
        ]
        for author in authors
    }
    figure = fast_p("fast-p", gpu_product, rows)
    assert figure is not None
    return figure


def test_a_picture_alone_has_its_colours_its_ground_and_its_legend() -> None:
    picture = ElementTree.fromstring(alone(curves("one", "two")))
    style = picture.find(f"{_SVG}style")
    assert style is not None
    assert ".mark.s1" in (style.text or "")
    assert picture.find(f"{_SVG}rect") is not None
    legend = picture.find(f"{_SVG}g")
    assert legend is not None
    assert [text.text for text in legend.iter(f"{_SVG}text")] == [
        "one (4 groups)",
        "two (4 groups)",
    ]
    assert float(picture.attrib["height"]) > 340


def test_one_series_needs_no_legend() -> None:
    picture = ElementTree.fromstring(alone(curves("one")))
    assert [text.text for text in picture.findall(f"{_SVG}g/{_SVG}text")] == []


def test_names_from_datasets_stay_text() -> None:
    picture = alone(curves(MARKUP, "two"))
    assert "<script" not in picture
    assert "<img" not in picture
    ElementTree.fromstring(picture)


def test_markdown_shows_the_picture_and_says_what_it_is() -> None:
    figure = curves("one", "two")
    text = markdown([figure])
    address = re.search(r"!\[fast\\_p on NVIDIA H200\]\(data:image/svg\+xml;base64,(\S+)\)", text)
    assert address is not None
    assert base64.b64decode(address[1]).decode() == alone(figure)
    assert text.endswith("passed 5 groups.")


def test_a_name_from_a_dataset_is_no_markup_there() -> None:
    text = markdown([curves("one", "two", gpu_product="x](javascript:alert(1)) <b> `y`")])
    assert r"x\]\(javascript:alert\(1\)\) \<b\> \`y\`" in text
    assert "](javascript" not in text


def test_tables_of_the_sample_have_the_plots_of_its_pages(sample_site: Site) -> None:
    plots = table_plots(sample_site.warehouse)
    assert r"fast\_p on NVIDIA H200" in plots["fast_p_curves"]
    assert plots["leaderboard_operations"].count("![Latency by ") == 3


@pytest.mark.parametrize("table", ["runs", "ranked_runs"])
def test_other_tables_have_none(sample_site: Site, table: str) -> None:
    assert table not in table_plots(sample_site.warehouse)
