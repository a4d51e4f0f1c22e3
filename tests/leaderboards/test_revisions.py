"""What stands when a dataset is read at several revisions, in whatever order."""

import itertools

import pytest

from tests.leaderboards.index import Index

FIRST, SECOND, THIRD = "r1", "r2", "r3"
DAYS = {FIRST: "2026-01-01", SECOND: "2026-02-01", THIRD: "2026-03-01"}


def revision(index: Index, name: str, files: dict[str, str], **inputs: str) -> None:
    """A revision of files (path to content); `inputs` by path with `/` and `.` left out."""
    index.revision(name, DAYS[name])
    for path, content in files.items():
        index.file(name, path, content, inputs.get(path.replace("/", "_"), ""))


def solution(index: Index, digest: str, read_at: str, content: str, path: str = "s/a") -> None:
    index.add(
        "implementations",
        implementation_digest=digest,
        source_revision=read_at,
        revision=read_at,
        content_digest=content,
        path=path,
        line=1,
    )


def test_the_earliest_identity_of_a_solution_is_kept_and_its_twin_hidden(index):
    solution(index, "twin", SECOND, "code")
    solution(index, "first", FIRST, "code")
    revision(index, SECOND, {"s/a": "file"}, s_a="twin")
    revision(index, FIRST, {"s/a": "file"}, s_a="first")
    for digest in ("twin", "first"):
        index.run(f"run of the {digest}", 10, implementation_digest=digest)
        index.rows["runs"][-1]["external_id"] = "the same trace"
    aliases = index.table("identity_aliases", "implementation_digest", "kept_digest")
    assert aliases == [("twin", "first")]
    assert index.table("implementations", "implementation_digest") == [("first",)]
    assert index.table("solutions", "implementation_digest") == [("first",)]
    assert index.table("runs", "run_digest") == [("run of the first",)]
    assert index.table("run_aliases", "run_digest", "shown_digest") == [
        ("run of the twin", "run of the first")
    ]
    assert index.table("superseded_implementations", "implementation_digest") == []


def test_a_file_that_moved_or_was_copied_is_the_same_solution(index):
    solution(index, "first", FIRST, "code", "s/a")
    solution(index, "moved", SECOND, "code", "s/copy")
    revision(index, FIRST, {"s/a": "file"}, s_a="first")
    revision(index, SECOND, {"s/copy": "file"}, s_copy="moved")
    aliases = index.table("identity_aliases", "implementation_digest", "kept_digest")
    assert aliases == [("moved", "first")]


def test_one_solution_of_two_operations_is_two_implementations(index):
    solution(index, "old", FIRST, "code")
    solution(index, "new", FIRST, "code")
    index.rows["implementations"][-1]["operation_digest"] = "changed operation"
    revision(index, FIRST, {"s/a": "file"}, s_a="old")
    revision(index, SECOND, {"s/a": "file"}, s_a="new")
    assert index.table("identity_aliases", "implementation_digest") == []
    assert index.table("superseded_implementations", "implementation_digest") == []


def test_a_run_whose_twin_was_never_read_stays_with_the_implementation_that_is_shown(index):
    solution(index, "twin", SECOND, "code")
    solution(index, "first", FIRST, "code")
    revision(index, FIRST, {"s/a": "file"}, s_a="first")
    revision(index, SECOND, {"s/a": "file"}, s_a="twin")
    index.run("reported", 10, implementation_digest="twin")
    index.run("measured again", 11, implementation_digest="twin", source_native=False)
    assert index.table("runs", "run_digest", "implementation_digest") == [
        ("measured again", "first"),
        ("reported", "first"),
    ]
    assert index.table("run_aliases", "run_digest") == []


def line(
    index: Index, digest: str, read_at: str, operation: str, external_id: str = "line", **more: str
) -> None:
    index.run(digest, 10, operation_digest=operation, revision=read_at, **more)
    index.rows["runs"][-1]["external_id"] = external_id


@pytest.mark.parametrize("order", list(itertools.permutations([FIRST, SECOND, THIRD])))
def test_a_line_is_a_run_of_the_definition_of_its_time_in_whatever_order_it_was_read(index, order):
    operations = {FIRST: "older", SECOND: "newer", THIRD: "newer"}
    for operation in ("older", "newer"):
        index.add("operations", operation_digest=operation)
    for name in (FIRST, SECOND, THIRD):
        revision(index, name, {"t/a": name})
    for name in order:
        line(index, f"of {operations[name]}", name, operations[name])
        index.rows["runs"][-1]["publication_id"] = f"{order.index(name):08d}"
        if name != FIRST:
            line(index, "added later", name, "newer", "added line")
            index.rows["runs"][-1]["publication_id"] = f"{order.index(name):08d}"
        index.rows["revisions"][(FIRST, SECOND, THIRD).index(name)]["publication_id"] = (
            f"{order.index(name):08d}"
        )
    assert index.table("runs", "run_digest") == [("added later",), ("of older",)]
    assert index.table("run_aliases", "run_digest", "shown_digest") == [("of newer", "of older")]


def test_equal_lines_of_two_roots_stay_two(index):
    for operation in ("older", "newer"):
        index.add("operations", operation_digest=operation)
    revision(index, FIRST, {"v1/traces/a": "t", "v2/traces/a": "t"})
    for row in index.rows["source_files"]:
        row["kind"] = "trace"
    line(index, "one", FIRST, "older", path="v1/traces/a")
    line(index, "two", FIRST, "newer", path="v2/traces/a")
    assert index.table("runs", "run_digest") == [("one",), ("two",)]


def test_what_was_withdrawn_by_another_digest_is_withdrawn_still(index):
    for operation in ("older", "newer"):
        index.add("operations", operation_digest=operation)
    revision(index, FIRST, {"t/a": "one"})
    revision(index, SECOND, {"t/a": "one"})
    line(index, "shown", FIRST, "older")
    line(index, "hidden", SECOND, "newer")
    index.correction("retract", "hidden")
    assert index.table("run_eligibility", "run_digest", "reasons") == [("shown", ["RETRACTED"])]


@pytest.mark.parametrize("order", list(itertools.permutations([FIRST, SECOND])))
def test_a_changed_source_supersedes_the_older_one_in_whatever_order_they_came(index, order):
    for number, name in enumerate(order):
        digest = {FIRST: "older", SECOND: "newer"}[name]
        solution(index, digest, name, f"code of {digest}")
        index.rows["implementations"][-1]["publication_id"] = f"{number:08d}"
        revision(index, name, {"s/a": f"file of {digest}"}, s_a=digest)
        index.run(f"run of the {digest}", 10, implementation_digest=digest)
    found = index.table("superseded_implementations", "implementation_digest", "replacement_digest")
    assert found == [("older", "newer")]
    assert index.table("run_eligibility", "run_digest", "reasons") == [
        ("run of the newer", []),
        ("run of the older", ["SUPERSEDED"]),
    ]
    assert index.table("ranked_runs", "run_digest") == [("run of the newer",)]


def test_a_file_that_goes_back_to_older_content_supersedes_the_newer_one(index):
    solution(index, "older", FIRST, "code of older")
    solution(index, "newer", SECOND, "code of newer")
    revision(index, FIRST, {"s/a": "f1"}, s_a="older")
    revision(index, SECOND, {"s/a": "f2"}, s_a="newer")
    revision(index, THIRD, {"s/a": "f1"}, s_a="older")
    found = index.table("superseded_implementations", "implementation_digest", "replacement_digest")
    assert found == [("newer", "older")]


def test_a_removed_solution_is_not_superseded(index):
    solution(index, "only", FIRST, "code")
    revision(index, FIRST, {"s/a": "file"}, s_a="only")
    revision(index, SECOND, {"s/b": "file"})
    assert index.table("superseded_implementations", "implementation_digest") == []


def test_two_solutions_in_one_file_do_not_supersede_each_other(index):
    solution(index, "one", FIRST, "code of one")
    solution(index, "two", FIRST, "code of two")
    index.rows["implementations"][-1]["solution_name"] = "another"
    revision(index, FIRST, {"s/a": "file"}, s_a="two")
    assert index.table("superseded_implementations", "implementation_digest") == []


def item(index: Index, path: str, content: str, inputs: str = "", read_at: str = FIRST) -> None:
    index.add(
        "quarantine",
        reason="BAD_JSON",
        path=path,
        line=1,
        revision=read_at,
        file_digest=content,
        inputs_digest=inputs,
    )


def standing(index: Index) -> list[tuple[str, str, str]]:
    return [
        (path, f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}")
        for path, first, last in index.table("quarantine", "path", "first_seen", "last_seen")
    ]


def test_an_item_stands_from_the_first_to_the_last_revision_that_has_it(index):
    item(index, "t/bad", "broken")
    revision(index, SECOND, {"t/bad": "broken"})
    revision(index, FIRST, {"t/bad": "broken"})
    assert standing(index) == [("t/bad", "2026-01-01", "2026-02-01")]


def test_a_corrected_file_clears_its_items_also_when_the_older_revision_is_read_again(index):
    item(index, "t/bad", "broken")
    revision(index, SECOND, {"t/bad": "whole"})
    revision(index, FIRST, {"t/bad": "broken"})
    assert standing(index) == []


def test_a_corrected_definition_clears_the_items_that_hung_on_it(index):
    item(index, "t/a", "same", inputs="definition in quarantine")
    revision(index, FIRST, {"t/a": "same"}, t_a="definition in quarantine")
    revision(index, SECOND, {"t/a": "same"}, t_a="definition published")
    assert standing(index) == []


def test_a_removed_file_clears_its_items(index):
    item(index, "t/bad", "broken")
    revision(index, FIRST, {"t/bad": "broken", "t/good": "whole"})
    revision(index, SECOND, {"t/good": "whole"})
    assert standing(index) == []


def test_a_file_of_an_author_that_was_not_read_again_is_not_removed(index):
    item(index, "t/ann/bad", "broken")
    index.revision(FIRST, DAYS[FIRST])
    index.file(FIRST, "t/ann/bad", "broken", author_directory="ann")
    index.file(FIRST, "t/bob/good", "whole", author_directory="bob")
    index.revision(SECOND, DAYS[SECOND], authors=["bob"])
    index.file(SECOND, "t/bob/good", "whole", author_directory="bob")
    assert standing(index) == [("t/ann/bad", "2026-01-01", "2026-01-01")]


def test_a_file_that_could_not_be_read_stands_until_it_is_listed(index):
    item(index, "t/unreadable", None)
    revision(index, FIRST, {"t/good": "whole"})
    assert [path for path, *_ in standing(index)] == ["t/unreadable"]
    revision(index, SECOND, {"t/good": "whole", "t/unreadable": "now there"})
    assert standing(index) == []
