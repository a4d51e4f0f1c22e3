"""`kernelindex ingest --replay`: every table again, from the raw store alone."""

import typer

from assets.leaderboards.index import build_index
from assets.tables.replay import Replayed, replay
from pipelines.commands.aside import say_what_is_set_aside
from pipelines.commands.index import errors_as_lines, open_warehouse
from pipelines.commands.output import ANSWER_IS_NO, print_json, say, show


def replay_all(json: bool) -> None:
    """Make every publication and the database again; exit 1 if anything came out differently."""
    with errors_as_lines():
        warehouse = open_warehouse()
        outcomes = replay(warehouse, lambda outcome: say(_line(outcome)))
        tables = build_index(warehouse, say=say).tables
        say_what_is_set_aside(warehouse)
    differing = [outcome for outcome in outcomes if outcome.problem is not None]
    if json:
        print_json(
            {
                "publications": len(outcomes),
                "rows": sum(outcome.rows for outcome in outcomes),
                "differing": [
                    {"publication": outcome.publication_id, "problem": outcome.problem}
                    for outcome in differing
                ],
                "tables": len(tables),
            }
        )
    else:
        same = len(outcomes) - len(differing)
        show(f"{same} of {len(outcomes)} publications are the same again; {len(tables)} tables.")
    if differing:
        raise typer.Exit(ANSWER_IS_NO)


def _line(outcome: Replayed) -> str:
    return f"{outcome.publication_id}: {outcome.problem or f'{outcome.rows:,} rows, as before'}"
