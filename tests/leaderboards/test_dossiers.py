"""The dossier of a run against the page that the public index shows of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.builders import PUBLIC
from tests.warehouses import ingest_into

PAGES = {
    "run-01a02032-gqa-ragged-prefill.txt": (
        "sha256:3ccbed69361cadec2cf61fb18f87e5a25d938611a200b685e69024d2a8107ab0"
    ),
}
# What the page names, and the dossier's column of it.
FIELDS = {
    "implementation": "solution",
    "project": "project",
    "revision": "source_revision",
    "external id": "external_id",
    "comparator": "protocol_comparator",
    "result": "status",
    "definition comparator": "workload_comparator",
    "harness": "harness",
    "timer": "timer",
    "primaryStatistic": "primary_statistic",
    "correctnessReference": "correctness_reference",
    "comparabilityFamily": "comparability_family",
    "cudaToolkit": "cuda_toolkit",
    "framework": "framework",
}


@pytest.fixture(scope="module")
def connection(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    root = tmp_path_factory.mktemp("seeds") / "warehouse"
    ingest_into(root, dataset=str(shared / "seeds" / "flashinfer-trace"), name=PUBLIC)
    with duckdb.connect(str(root / "kernelindex.duckdb"), read_only=True) as opened:
        yield opened


def dossier(connection: duckdb.DuckDBPyConnection, external_id: str) -> dict[str, Any]:
    found = connection.sql("from run_dossiers where external_id = $id", params={"id": external_id})
    [row] = found.fetchall()
    return dict(zip(found.columns, row, strict=True))


@pytest.mark.parametrize("page", PAGES)
def test_a_dossier_has_every_field_of_the_published_page(connection, shared, page):
    text = (shared / "seeds" / page).read_text()
    manifests = json.loads(text[text.index("{\n") : text.index("\nCite this record")])
    external_id = re.search(r"^external id(.*)$", text, re.MULTILINE)[1]
    found = dossier(connection, external_id)
    for label, column in FIELDS.items():
        if label == "revision":
            # The seeds are read as a directory here, so the revision is that of its files.
            continue
        [stated] = set(re.findall(rf"^{re.escape(label)}(\S.*)$", text, re.MULTILINE))
        assert found[column] == stated, label
    run, environment = manifests["run"]["spec"], manifests["environment"]["spec"]
    assert found["primary_value"] == run["timing"]["latencyNs"]["mean"]
    assert found["max_absolute_error"] == run["correctness"]["maximumAbsoluteError"]
    assert found["max_relative_error"] == run["correctness"]["maximumRelativeError"]
    metrics = run["sourceNative"]["metrics"]
    assert found["reported_speedup"] == metrics["speedup_factor"]
    assert found["reference_latency_ms"] == metrics["reference_latency_ms"]
    assert found["workload_digest"] == run["workloadDigest"]
    assert found["protocol_digest"] == run["protocolDigest"]
    assert found["environment_digest"] == run["environmentDigest"]
    assert f"{found['observed_at']:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z" == run["observedAt"]
    assert found["gpu_product"] == environment["hardware"]["product"]
    assert found["published_architecture"] == environment["hardware"]["architecture"] == "unknown"
    assert found["gpu_architecture"] == "sm_100"
    assert json.loads(found["libraries_json"]) == environment["software"]["libraries"]
    assert f"comparison key{found['comparison_key'][:23]}…" in text
    assert found["title"] == manifests["run"]["metadata"]["title"]
    assert (found["source_native"], found["corrections"]) == (True, [])
    [measurement] = found["measurements"]
    assert (measurement["metric"], measurement["statistic"]) == ("latency", "mean")
    tensors = json.loads(found["workload_manifest_json"])["spec"]["tensors"]
    for name, tensor in tensors.items():
        shape = ", ".join(map(str, tensor["shape"]))
        assert f"\n{name}{tensor['dtype']} [{shape}]\n" in text
    for axis, size in json.loads(found["workload_axes_json"]).items():
        assert f"\n{axis}{size}\n" in text


def test_there_is_one_dossier_for_every_run(sample_warehouse):
    with duckdb.connect(str(sample_warehouse / "kernelindex.duckdb"), read_only=True) as opened:
        counts = opened.sql(
            "select (select count(*) from runs), (select count(*) from run_dossiers),"
            " (select count(distinct run_digest) from run_dossiers)"
        ).fetchall()
    assert len(set(counts[0])) == 1
    assert counts[0][0] >= 60


def test_a_dossier_shows_the_caveats_of_its_run(sample_warehouse):
    with duckdb.connect(str(sample_warehouse / "kernelindex.duckdb"), read_only=True) as opened:
        rows = opened.sql("select run_digest, code from caveats order by all limit 40").fetchall()
        for digest, code in rows:
            [(caveats,)] = opened.sql(
                "select caveats from run_dossiers where run_digest = $digest",
                params={"digest": digest},
            ).fetchall()
            assert code in [caveat["code"] for caveat in caveats]
    assert rows
