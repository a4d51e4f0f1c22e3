"""Real documents, gathered beside the repository; skipped where that folder is absent."""

from collections import Counter

import pytest

from assets.traces.layout import author_of, kind_of
from assets.traces.pull import pull


@pytest.fixture
def read(corpus, store):
    def read_it(name):
        return pull(str(corpus / name), revision=None, authors=None, store=store)

    return read_it


def kinds(snapshot):
    return Counter(kind_of(file.path) for file in snapshot.files)


def test_every_file_of_the_published_layout_has_its_kind(read):
    snapshot = read("flashinfer-trace")
    assert kinds(snapshot) == {"definition": 354, "workload": 30, "solution": 222, "trace": 50}
    assert snapshot.problems == ()
    authors = Counter(author_of(f.path) for f in snapshot.files if kind_of(f.path) == "solution")
    assert authors["gpt-5"] == 77
    assert None not in authors


def test_earlier_layouts_are_read_whole_and_have_no_authors(read):
    snapshot = read("legacy-schema")
    assert len(snapshot.files) == 101
    assert None not in kinds(snapshot)
    assert {author_of(file.path) for file in snapshot.files} == {None}


@pytest.mark.parametrize(
    ("name", "files"), [("generation-runs", 51), ("fi-trace-definitions", 121)]
)
def test_other_collections_are_read_whole(read, name, files):
    assert len(read(name).files) == files
