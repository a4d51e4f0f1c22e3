import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.traces.errors import DatasetError
from assets.traces.layout import (
    author_of,
    is_wanted,
    is_wanted_locally,
    kind_of,
    of_authors,
    path_fault,
    printable,
)

PUBLISHED = [
    ("definitions/gemm/gemm_n128_k2048.json", "definition", None),
    ("workloads/gemm/gemm_n128_k2048.jsonl", "workload", None),
    ("solutions/gpt-5/gemm/gemm_n128_k2048/gpt-5_cuda.json", "solution", "gpt-5"),
    ("traces/gpt-5/gemm/gemm_n128_k2048.jsonl", "trace", "gpt-5"),
]


@pytest.mark.parametrize(("path", "kind", "author"), PUBLISHED)
def test_published_paths_are_wanted_and_say_kind_and_author(path, kind, author):
    assert is_wanted(path)
    assert is_wanted_locally(path)
    assert kind_of(path) == kind
    assert author_of(path) == author


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("definitions.json", "definition"),
        ("traces.jsonl", "trace"),
        ("traces/gemm/gemm_n_4096_k_4096.jsonl", "trace"),
        ("traces/gemm.jsonl", "trace"),
        ("traces/workloads/prefill/mla.jsonl", "workload"),
        ("solutions/gemm/gemm_n_4096_k_4096/x.json", "solution"),
        ("predetermined/definitions/x.json", "definition"),
        ("block_sparse/x.json", None),
        ("x.json", None),
    ],
)
def test_earlier_layouts_have_kinds_by_place_and_no_authors(path, kind):
    assert kind_of(path) == kind
    assert author_of(path) is None


def test_the_author_folder_is_found_below_another_root():
    path = "run_1/solutions/gpt-5/gemm/gemm_n128_k2048/a.json"
    assert (kind_of(path), author_of(path)) == ("solution", "gpt-5")


@pytest.mark.parametrize(
    "path",
    ["README.md", "definitions.json", "definitions/x.py", "blob/workloads/x.safetensors", "traces"],
)
def test_the_hub_is_asked_for_dataset_documents_only(path):
    assert not is_wanted(path)


def test_tensors_are_wanted_only_when_asked_for():
    assert is_wanted("blob/workloads/gemm/x.safetensors", with_tensors=True)
    assert not is_wanted("blob/workloads/gemm/x.json", with_tensors=True)


def test_hidden_folders_and_the_identity_file_are_not_documents():
    assert not is_wanted_locally(".git/x.json")
    assert not is_wanted_locally("a/.cache/x.json")
    assert not is_wanted_locally("dataset.json")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd.json",
        "C:/x.json",
        "definitions/../../x.json",
        "./x.json",
        "definitions//x.json",
        "definitions/x.json/",
        "definitions\\x.json",
        "definitions/a\nb.json",
        "definitions/a\x00b.json",
        "definitions/a\u202eb.json",
        "definitions/\udcff.json",
        "definitions/" + "a" * 256,
        "a/" * 600 + "x.json",
    ],
)
def test_unsafe_paths_are_refused_and_can_be_printed(path):
    assert path_fault(path) is not None
    assert printable(path).isprintable()


@given(st.lists(st.text(string.ascii_letters + "._-0", min_size=1, max_size=8), min_size=1))
def test_a_path_is_safe_exactly_when_it_stays_where_it_is_put(parts):
    path = "/".join(parts)
    leaves = any(part in (".", "..") for part in parts)
    assert (path_fault(path) is not None) == (leaves or len(path) > 1024)


def test_an_authors_filter_keeps_definitions_workloads_and_that_author():
    paths = [path for path, _, _ in PUBLISHED] + ["traces/gpt-o3/gemm/x.jsonl"]
    assert of_authors(paths, ["gpt-5"]) == paths[:4]
    assert of_authors(paths, None) == paths


def test_an_unknown_author_is_answered_with_the_known_ones():
    with pytest.raises(DatasetError, match="no author 'gpt-6' here; authors are gpt-5"):
        of_authors([path for path, _, _ in PUBLISHED], ["gpt-6"])
