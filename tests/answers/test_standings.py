"""Who stands where in the groups of an operation, and what tells apart groups that look alike."""

import json

from assets.answers.lookup import find_operation
from assets.answers.standings import Standing, standing, told_apart
from tests.leaderboards.index import Index


def two_groups(index: Index, **other: object) -> Standing:
    """One run in a group, and another in one that differs in some columns."""
    index.add("environments", summary="CUDA 12.8")
    index.add("environments", environment_digest="sha256:other environment", summary="CUDA 12.8")
    for digest, title in (("protocol", "harness"), ("sha256:controlled", "rerun")):
        index.add("protocols", protocol_digest=digest, title=title)
    index.add("operations", canonical_json="{}")
    index.add("workloads", axes_label="m=1", dtypes=["bf16"], external_id="u")
    index.add("implementations", implementation_digest="implementation", path="s")
    index.run("one", 1000)
    index.run("other", 2000, **other)
    connection = index.build()
    return standing(connection, find_operation(connection, "definition"))


def apart(found: Standing) -> list[str]:
    return sorted(told_apart(found.groups).values())


def test_groups_that_look_the_same_say_what_separates_them() -> None:
    index = Index()
    assert apart(two_groups(index, input_fingerprint="sha256:0123456789")) == [
        "inputs 01234567",
        "inputs inputs",
    ]


def test_every_difference_is_named() -> None:
    index = Index()
    found = two_groups(
        index,
        input_fingerprint="sha256:11111111",
        reference_digest="sha256:22222222",
        protocol_digest="sha256:controlled",
        environment_digest="sha256:other environment",
    )
    assert (
        "protocol rerun controll, environment other en, inputs 11111111, reference 22222222"
    ) in apart(found)


def test_one_group_needs_no_telling_apart() -> None:
    index = Index()
    assert apart(two_groups(index)) == [""]


def test_a_run_of_no_time_is_not_ranked_and_the_answer_is_json() -> None:
    index = Index()
    found = two_groups(index, implementation_digest="of no time")
    index.rows["runs"][1]["primary_value"] = 0
    connection = index.build()
    found = standing(connection, find_operation(connection, "definition"))
    [group] = found.groups
    assert [entry.rank for entry in group.ranking] == [1]
    assert [item.reason for item in group.not_ranked] == ["LATENCY_NOT_POSITIVE"]
    json.dumps(found.as_json(), allow_nan=False)


def test_authors_of_one_source_are_all_named() -> None:
    index = Index()
    found = two_groups(index, author_directory="zoe", path="traces/zoe")
    [group] = found.groups
    assert [entry.authors for entry in group.ranking] == [("author", "zoe")]
