"""Bundles that are not what they say are refused, on both sides, with the path in the message."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from assets.reruns.bundles import (
    BundleError,
    BundleItem,
    Limits,
    read_bundle,
    write_bundle,
)
from assets.reruns.worker.job import JobBundle, Protocol, bundle_id_of, canonical_json

DEFINITION = {
    "name": "copy",
    "axes": {"n": {"type": "var"}},
    "inputs": {
        "z": {"shape": ["n"], "dtype": "float32"},
        "a": {"shape": ["n"], "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
    "reference": "def run(z, a):\n    return z + a\n",
}
WORKLOAD = {"axes": {"n": 4}, "inputs": {"z": {"type": "random"}, "a": {"type": "random"}}}
SOLUTION = {
    "name": "s",
    "spec": {"language": "python", "entry_point": "main.py::run"},
    "sources": [{"path": "main.py", "content": "def run(z, a):\n    return z + a\n"}],
}


def item(**changes: object) -> BundleItem:
    return BundleItem(**{  # type: ignore[arg-type]
        "item_id": "one", "definition": DEFINITION, "workload": WORKLOAD, "solution": SOLUTION,
        **changes,
    })  # fmt: skip


@pytest.fixture
def bundle(tmp_path: Path) -> JobBundle:
    return write_bundle(tmp_path / "job", [item()], reason="because")


def rewrite(bundle: JobBundle, change: Callable[[dict[str, object]], None]) -> None:
    """Change bundle.json and give it the id of its new content."""
    path = bundle.root / "bundle.json"
    document = json.loads(path.read_bytes())
    change(document)
    document["bundle_id"] = bundle_id_of(document)
    path.write_bytes(canonical_json(document))


def test_a_written_bundle_reads_back_the_same(bundle: JobBundle) -> None:
    again = read_bundle(bundle.root)
    assert again == bundle
    assert again.read_document(again.items[0].definition) == DEFINITION


def test_documents_keep_the_order_of_their_inputs(bundle: JobBundle) -> None:
    definition = bundle.read_document(bundle.items[0].definition)
    assert list(definition["inputs"]) == ["z", "a"]


def test_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    content = json.dumps(SOLUTION, indent=4).encode()
    bundle = write_bundle(tmp_path / "job", [item(solution=content)], reason="because")
    assert (bundle.root / bundle.items[0].solution.path).read_bytes() == content


def test_each_bundle_has_fresh_seeds_and_nonce(tmp_path: Path) -> None:
    left = write_bundle(tmp_path / "left", [item()], reason="because")
    right = write_bundle(tmp_path / "right", [item()], reason="because")
    assert left.nonce != right.nonce
    assert set(left.seeds).isdisjoint(right.seeds)


def test_a_bundle_is_never_written_over_another(bundle: JobBundle) -> None:
    with pytest.raises(BundleError, match="already exists"):
        write_bundle(bundle.root, [item()], reason="because")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item_id": "../escape"}, "item_id"),
        ({"item_id": ""}, "item_id"),
    ],
)
def test_items_that_the_worker_would_refuse_are_not_written(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(BundleError, match=message):
        write_bundle(tmp_path / "job", [item(**changes)], reason="because")
    assert list(tmp_path.iterdir()) == []


def test_a_reason_is_required(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="reason"):
        write_bundle(tmp_path / "job", [item()], reason="  ")


def test_two_items_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="same item_id"):
        write_bundle(tmp_path / "job", [item(), item()], reason="because")


def test_tensor_files_are_pinned_under_the_name_that_the_workload_uses(tmp_path: Path) -> None:
    blob = tmp_path / "blob.safetensors"
    blob.write_bytes(b"content")
    bundle = write_bundle(
        tmp_path / "job", [item(tensors={"./blob/x.safetensors": blob})], reason="because"
    )
    tensor = bundle.items[0].tensors[0]
    assert tensor.name == "./blob/x.safetensors"
    assert (bundle.root / tensor.path).read_bytes() == b"content"


def test_an_unlisted_file_is_refused(bundle: JobBundle) -> None:
    (bundle.root / "solutions" / "extra.json").write_text("{}")
    with pytest.raises(BundleError, match=r"solutions/extra\.json"):
        read_bundle(bundle.root)


def test_a_missing_file_is_refused(bundle: JobBundle) -> None:
    (bundle.root / bundle.items[0].workload.path).unlink()
    with pytest.raises(BundleError, match="is not there"):
        read_bundle(bundle.root)


def test_a_link_is_refused_even_to_the_right_content(bundle: JobBundle, tmp_path: Path) -> None:
    path = bundle.root / bundle.items[0].solution.path
    outside = tmp_path / "outside.json"
    path.rename(outside)
    path.symlink_to(outside)
    with pytest.raises(BundleError, match="is a link"):
        read_bundle(bundle.root)


def test_a_linked_folder_is_refused(bundle: JobBundle, tmp_path: Path) -> None:
    (bundle.root / "solutions").rename(tmp_path / "elsewhere")
    (bundle.root / "solutions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match="is a link"):
        read_bundle(bundle.root)


def test_a_pipe_is_refused_and_not_waited_for(bundle: JobBundle) -> None:
    os.mkfifo(bundle.root / "solutions" / "pipe")
    with pytest.raises(BundleError, match="neither a file nor a folder"):
        read_bundle(bundle.root)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../outside.json", "solutions/../x", "bundle.json"]
)
def test_paths_outside_the_bundle_are_refused(bundle: JobBundle, path: str) -> None:
    def change(document: dict[str, object]) -> None:
        document["files"][path] = {"digest": "sha256:" + "0" * 64, "size_bytes": 1}  # type: ignore[index]

    rewrite(bundle, change)
    with pytest.raises(BundleError):
        read_bundle(bundle.root)


def test_a_wrong_size_is_refused(bundle: JobBundle) -> None:
    path = bundle.items[0].solution.path
    rewrite(bundle, lambda document: document["files"][path].update(size_bytes=3))  # type: ignore[index]
    with pytest.raises(BundleError, match="bytes"):
        read_bundle(bundle.root)


def test_a_changed_bundle_id_is_refused(bundle: JobBundle) -> None:
    path = bundle.root / "bundle.json"
    document = json.loads(path.read_bytes())
    document["reason"] = "another"
    path.write_bytes(canonical_json(document))
    with pytest.raises(BundleError, match="bundle_id"):
        read_bundle(bundle.root)


@pytest.mark.parametrize(
    "protocol",
    [
        {"name": "another-protocol"},
        {"name": "kernelindex-controlled-v1", "samplez": 3},
        {"name": "kernelindex-controlled-v1", "samples": 0},
        {"name": "kernelindex-controlled-v1", "samples": 1.5},
        {"name": "kernelindex-controlled-v1", "rounds": True},
    ],
)
def test_protocols_that_this_worker_does_not_run_are_refused(
    bundle: JobBundle, protocol: dict[str, object]
) -> None:
    rewrite(bundle, lambda document: document.update(protocol=protocol))
    with pytest.raises(BundleError, match="protocol"):
        read_bundle(bundle.root)


def test_limits_must_be_positive(bundle: JobBundle) -> None:
    limits = {**asdict(Limits()), "deadline_s": 0}
    rewrite(bundle, lambda document: document.update(limits=limits))
    with pytest.raises(BundleError, match="deadline_s"):
        read_bundle(bundle.root)


def test_parameters_that_are_not_given_are_the_protocols_own() -> None:
    assert Protocol.from_document({"name": "kernelindex-controlled-v1"}) == Protocol()
