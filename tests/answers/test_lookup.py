"""Finding a run by the beginning of its digest."""

from pathlib import Path

import duckdb
import pytest

from assets.answers.errors import NoAnswerError
from assets.answers.lookup import Kind, find, find_all
from assets.tables.warehouse import Warehouse


@pytest.mark.parametrize("length", [4, 7, 8, 9, 12, 64])
def test_a_beginning_of_a_digest_finds_the_runs_that_have_it_and_no_other(
    sample_warehouse: Path, length: int
) -> None:
    database = str(Warehouse(sample_warehouse).database)
    with duckdb.connect(database, read_only=True) as connection:
        rows = connection.sql("select run_digest from runs").fetchall()
        hexadecimal = [digest.removeprefix("sha256:") for (digest,) in rows]
        for beginning in {digest[:length] for digest in hexadecimal}:
            found = find_all(connection, beginning, [Kind.RUN])
            expected = sorted(digest for digest in hexadecimal if digest.startswith(beginning))
            assert [item.digest for item in found] == [f"sha256:{digest}" for digest in expected]


def test_digits_that_no_digest_begins_with_find_no_run(sample_warehouse: Path) -> None:
    database = str(Warehouse(sample_warehouse).database)
    with duckdb.connect(database, read_only=True) as connection:
        [(digest,)] = connection.sql("select min(run_digest) from runs").fetchall()
        digits = digest.removeprefix("sha256:")
        changed = "1" if digits[8] == "0" else "0"
        beginnings = (f"{digits[:8]}{changed}", "ffffffffffffffff", "00000000000")
        assert [find_all(connection, text, [Kind.RUN]) for text in beginnings] == [[], [], []]


@pytest.mark.parametrize(
    ("text", "is_too_few"), [("00", True), ("sha256:0f", True), ("0zz", False)]
)
def test_too_few_digits_are_said_to_be_too_few(
    sample_warehouse: Path, text: str, is_too_few: bool
) -> None:
    database = str(Warehouse(sample_warehouse).database)
    with (
        duckdb.connect(database, read_only=True) as connection,
        pytest.raises(NoAnswerError) as error,
    ):
        find(connection, text)
    assert ("give 4 digits or more" in str(error.value)) == is_too_few
