"""Every writing command works while a publication is set aside, and people see that it is."""

import json
import shutil
from importlib import resources
from pathlib import Path

import pytest

from assets.leaderboards.catalog import read_catalog
from assets.tables.warehouse import Warehouse
from tests.pipelines.conftest import Run, runner_on

_FRAGILE = """\
-- fragile: one row per publication with runs
-- key: publication_id
-- column publication_id: the publication
-- column number: the name of a solution as a number, where that is one
select
    publication_id,
    max(case when author_directory = 'kernelindex-torch' then solution_name::integer end) as number
from published_runs
group by publication_id
"""


@pytest.fixture
def change(warehouse_copy: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on a copy of the sample's warehouse."""
    return runner_on(warehouse_copy, monkeypatch)


@pytest.mark.integration
def test_commands_work_and_speak_while_a_publication_is_set_aside(
    change: Run, warehouse_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(warehouse_copy)
    second = warehouse.publications()[2].publication_id
    [target] = json.loads(
        change("query", "--json", "select min(run_digest) as run from ranked_runs").stdout
    )
    who = ("--author", "a", "--reason", "b", "--evidence", "https://example.org")
    correct = ("correct", "attest", str(target["run"]), *who)

    shutil.copytree(Path(str(resources.files("sql"))), tmp_path / "sql")
    (tmp_path / "sql" / "tables" / "fragile.sql").write_text(_FRAGILE)
    broken = read_catalog(tmp_path / "sql")
    with monkeypatch.context() as patched:
        patched.setattr("assets.leaderboards.index.sql_catalog", lambda: broken)
        said = change(*correct)
        assert "Published 1 of 1" in said.stdout
        assert f"set aside: publication {second}" in said.stderr
        assert "doctor --readmit 2" in said.stderr
        again = change("doctor", "--quick", "--readmit", "2", code=1).stdout
        assert f"publication {second}: still breaks sql/tables/fragile.sql" in again
        assert "4 of 4 publications are the same again" in change("ingest", "--replay").stdout
        [counted] = json.loads(change("query", "--json", "select count(*) as n from runs").stdout)
        assert counted == {"n": 80}

    status = json.loads(change("status", "--json").stdout)
    [aside] = status["set_aside"]
    assert (aside["publication"], aside["statement"]) == (second, "sql/tables/fragile.sql")
    assert status["left_out"]["runs"] == 22
    assert status["database_is_current"] is True
    assert f"set aside: publication {second}" in change("status").stdout
    found = json.loads(change("doctor", "--json", code=1).stdout)
    assert [item["fault"] for item in found["findings"]] == ["SET_ASIDE"]
    assert change("doctor", "--repair", code=1)

    back = change("doctor", "--readmit", "2")
    assert "publication 2: is in the index again" in back.stdout
    assert json.loads(change("status", "--json").stdout)["rows"]["runs"] == 102
    assert "not set aside" in change("doctor", "--readmit", "2", code=2).stderr
