"""An existing dagster.yaml gets what is new, and loses nothing of its owner's."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.instance import InstanceError, prepare_home
from pipelines.instance_settings import InstanceSettingsError, renewed

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
OURS: dict[str, Any] = yaml.safe_load((PIPELINES / "dagster.yaml").read_text())
EARLIER = (PIPELINES / "dagster-earlier.yaml").read_text().split("\n---\n")[1:]
NEW = renewed("").text


def values(text: str) -> Any:
    return yaml.safe_load(text)


def test_a_new_file_has_our_settings_and_says_where_own_entries_go() -> None:
    assert values(NEW) == OURS
    assert "write entries of your own above" in NEW.splitlines()[0]
    assert renewed(NEW) == renewed("")


@pytest.mark.parametrize("text", [*EARLIER, (PIPELINES / "dagster.yaml").read_text()])
def test_what_an_earlier_version_wrote_becomes_what_this_one_writes(text: str) -> None:
    assert renewed(text) == renewed("")
    assert renewed(text.replace("\n", "\r\n")) == renewed("")
    assert renewed(text.rstrip("\n")) == renewed("")


OWN = """# Kept by the platform team.
storage:
  postgres:  # the shared one
    postgres_url: {env: PG}

# Python logs go to the collector.
python_logs:
  managed_python_loggers: [root]
"""


@pytest.mark.parametrize("place", ["above", "below", "between"])
@pytest.mark.parametrize("old", [*EARLIER, NEW])
def test_entries_and_comments_of_an_owner_stay(old: str, place: str) -> None:
    if place == "between":
        first, second = old.split("nux:\n", 1)
        text = f"{first}{OWN}\nnux:\n{second}"
    else:
        text = f"{OWN}\n{old}" if place == "above" else f"{old}\n{OWN}"
    found = renewed(text)
    assert values(found.text) == {**OURS, **values(OWN)}
    for line in OWN.splitlines():
        assert line in found.text.splitlines()
    assert found.text.index("storage:") < found.text.index("telemetry:")
    assert found.notes == ()
    assert renewed(found.text) == found


def test_an_entry_that_takes_the_place_of_ours_stays_and_is_said() -> None:
    own = "concurrency:\n  runs:\n    max_concurrent_runs: 4  # two is too few\n"
    found = renewed(f"{own}\n{NEW}")
    assert found.text.startswith(own)
    assert values(found.text) == {**OURS, **values(own)}
    [note] = found.notes
    assert note.startswith("your entry concurrency stays as it is; kernelindex expects ")
    assert "concurrency.pools: {default_limit: 1, granularity: run}" in note
    assert "concurrency.runs.tag_concurrency_limits: [{" in note
    assert "\n" not in note
    assert renewed(found.text) == found


def test_an_entry_that_has_all_of_ours_and_more_is_no_conflict() -> None:
    limits = [{"key": "mine", "limit": 2}, *OURS["concurrency"]["runs"]["tag_concurrency_limits"]]
    runs = {"tag_concurrency_limits": limits, "max_concurrent_runs": 9}
    more = {"concurrency": {**OURS["concurrency"], "runs": runs}}
    found = renewed(yaml.safe_dump(more))
    assert (found.notes, values(found.text)) == ((), {**OURS, **more})


def test_what_was_changed_in_our_part_is_its_owners() -> None:
    changed = NEW.replace("telemetry:\n  enabled: false", "telemetry:\n  enabled: true  # wanted")
    found = renewed(changed)
    assert values(found.text) == {**OURS, "telemetry": {"enabled": True}}
    assert "enabled: true  # wanted" in found.text
    assert found.text.index("telemetry:") < found.text.index("nux:")
    assert found.notes == (
        "your entry telemetry stays as it is; kernelindex expects telemetry.enabled: false",
    )
    assert renewed(found.text) == found


def test_a_comment_in_our_part_stays() -> None:
    found = renewed(NEW.replace("nux:\n", "# We asked for this.\nnux:\n"))
    assert "# We asked for this." in found.text
    assert values(found.text) == OURS
    assert renewed(found.text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("telemetry: [", "line "),
        ("a: 1\na: 2\n", "has the entry a twice"),
        ("- a\n- b\n", "has no entries"),
        ("just text", "has no entries"),
        ("a: 1\n---\nb: 2\n", "line 2"),
        ("a: \x00", "no YAML"),
        ("a: !!python/object:os.system {}\n", "line 1"),
        ("a: " + "[" * 20_000, "nested too deeply"),
        ("\ta: 1\n", "line 1"),
    ],
)
def test_what_is_no_settings_file_is_refused_and_left(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "dagster.yaml"
    path.write_text(text)
    with pytest.raises(InstanceError, match=message) as raised:
        prepare_home(tmp_path)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    ["{storage: {x: 1}}\n", "{storage: {x: 1},\n nux: {enabled: true}}\n", "storage: 1\n...\n"],
)
def test_what_cannot_be_told_apart_stays_and_is_said(text: str) -> None:
    found = renewed(text)
    assert found.text == text
    [note] = found.notes
    assert "it lacks telemetry" in note


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(InstanceError, match=r"dagster\.yaml: .*correct it, or move it away"):
        prepare_home(tmp_path)


def test_the_file_is_written_once_with_its_mode_and_through_its_link(tmp_path: Path) -> None:
    kept = tmp_path / "elsewhere.yaml"
    kept.write_text(OWN)
    kept.chmod(0o640)
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").symlink_to(kept)
    assert prepare_home(home) == ()
    assert (home / "dagster.yaml").is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o640
    assert values(kept.read_text()) == {**OURS, **values(OWN)}
    written = kept.stat()
    prepare_home(home)
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
    assert [path.name for path in home.iterdir()] == ["dagster.yaml"]


def test_a_pipe_in_its_place_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "dagster.yaml")
    with pytest.raises(InstanceError, match="is no file"):
        prepare_home(tmp_path)


SCALARS = st.one_of(st.booleans(), st.integers(), st.text(max_size=8), st.none())
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.one_of(st.sampled_from(sorted(OURS)), st.text(min_size=1, max_size=6))


@given(st.dictionaries(KEYS, NESTED, max_size=5), st.sampled_from(["", NEW, *EARLIER]))
@settings(max_examples=60)
def test_no_entry_is_ever_lost(own: dict[str, Any], old: str) -> None:
    dumped = yaml.safe_dump(own, sort_keys=False, default_flow_style=False) if own else ""
    text = dumped + old
    try:
        found = renewed(text)
    except InstanceSettingsError:
        return  # an entry that both parts of an old file have
    assert values(found.text) == {**OURS, **own} or found.text == text
    assert renewed(found.text) == found
