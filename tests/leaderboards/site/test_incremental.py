"""A build touches what changed and nothing else."""

from pathlib import Path

import pytest

from assets.leaderboards.site.folder import RECORD, SiteError, SiteFolder
from tests.leaderboards.site.sites import Site, publish_dataset, toy_dataset


def test_a_second_build_touches_nothing(tmp_path: Path) -> None:
    site = Site.of(toy_dataset(tmp_path / "one", {"fast": 0.01, "slow": 0.02}), tmp_path)
    before = site.states()
    again = site.build()
    assert again.written == 0
    assert again.unchanged == len(before) - 1  # all but the record
    assert site.states() == before


def test_only_pages_that_say_something_new_are_written(tmp_path: Path) -> None:
    site = Site.of(toy_dataset(tmp_path / "one", {"fast": 0.01, "slow": 0.02}), tmp_path)
    before = site.states()
    publish_dataset(
        site.warehouse, toy_dataset(tmp_path / "two", {"fast": 0.01, "slow": 0.02, "new": None})
    )
    site.build()
    after = site.states()
    changed = {name for name in after if after[name] != before.get(name)}
    new_runs = {n for n in after if n.startswith("runs/") and n.endswith(".html")} - before.keys()
    assert len(new_runs) == 1
    assert "index.html" in changed
    assert {"style.css", "site.js", "search.html", "quarantine/index.html"}.isdisjoint(changed)


def test_old_addresses_stay_as_the_index_grows(tmp_path: Path) -> None:
    site = Site.of(toy_dataset(tmp_path / "one", {"fast": 0.01}), tmp_path)
    before = {str(path.relative_to(site.root)) for path in site.pages()}
    publish_dataset(site.warehouse, toy_dataset(tmp_path / "two", {"fast": 0.01, "new": 0.03}))
    site.build()
    assert before <= {str(path.relative_to(site.root)) for path in site.pages()}
    assert site.broken_links() == []


def test_a_page_whose_subject_is_gone_becomes_a_note(tmp_path: Path) -> None:
    first = SiteFolder(tmp_path / "site")
    first.write("runs/a.html", "a run")
    first.write("runs/a.json", "{}")
    first.finish(lambda address: "")
    second = SiteFolder(tmp_path / "site")
    second.write("index.html", "home")
    counts = second.finish(lambda address: f"{address} is no longer here")
    assert (tmp_path / "site/runs/a.html").read_text() == "runs/a.html is no longer here"
    assert not (tmp_path / "site/runs/a.json").exists()
    assert counts.removed == 2


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(SiteError, match="is no site and not empty"):
        SiteFolder(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letters.txt"]


def test_a_build_that_died_can_be_finished(tmp_path: Path) -> None:
    SiteFolder(tmp_path / "site").write("index.html", "half")
    second = SiteFolder(tmp_path / "site")
    second.write("index.html", "whole")
    second.finish(lambda address: "")
    assert (tmp_path / "site/index.html").read_text() == "whole"


def test_a_page_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SiteFolder(tmp_path / "site")
    folder.write("index.html", "old")

    def fails(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(SiteError, match=r"index\.html: cannot be written"):
        folder.write("index.html", "new")
    assert (tmp_path / "site/index.html").read_text() == "old"
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == ["index.html", RECORD]
