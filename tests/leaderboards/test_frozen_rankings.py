"""The ranking policies are versions: what they say of the sample's runs does not change.

Where one of these digests changes, the policy changed: give it a new version beside the old one.
"""

import hashlib
from collections.abc import Iterator

import duckdb
import pytest

from tests.warehouses import ingest_into

FROZEN = {
    "ranked_runs": ("ranking-v1", "comparison_key, run_digest, rank, group_size, display_order"),
    "record_events": ("ranking-v1", 'comparison_key, run_digest, previous_run_digest, "at", cause'),
    "ranked_implementations": (
        "ranking-v2",
        "comparison_key, implementation_digest, median_ns, minimum_ns, maximum_ns, repeats, rank,"
        " group_size, display_order",
    ),
}
DIGESTS = {
    "ranked_runs": "6c783015a564b17501b5f8195a21579b9d04ed449bdda5e7fae3da79ba0ff98b",
    "record_events": "46e451c9f50f132284df6fc8dbf09194fa7d08e299021e22446fa0fc1bb66fd6",
    "ranked_implementations": "ddea4be49831ccde2fc163bbc59adb36f24d0bdce4df4fc02645b0f5028e4531",
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    root = tmp_path_factory.mktemp("frozen") / "warehouse"
    ingest_into(root)
    with duckdb.connect(str(root / "kernelindex.duckdb"), read_only=True) as opened:
        yield opened


@pytest.mark.parametrize("table", FROZEN)
def test_a_policy_ranks_the_sample_as_it_did_when_it_got_its_version(connection, table):
    policy, columns = FROZEN[table]
    rows = connection.sql(f"select {columns} from {table} order by all").fetchall()
    versions = connection.sql(f"select distinct policy_version from {table}").fetchall()
    assert versions == [(policy,)]
    lines = "\n".join(" ".join(map(str, row)) for row in rows)
    assert hashlib.sha256(lines.encode()).hexdigest() == DIGESTS[table]
