"""`kernelindex correct`: retract, supersede or attest, one at a time or from a file."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from assets.answers.lookup import Kind, find, short
from assets.tables.corrections import (
    Action,
    Correction,
    LocatedCorrection,
    parse_corrections,
    publish_corrections,
)
from assets.tables.reader import open_database
from pipelines.commands.aside import say_what_is_set_aside
from pipelines.commands.index import Json, errors_as_lines, open_warehouse
from pipelines.commands.output import fail, print_json, say, show

correct = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=True,
    help="Publish corrections: append-only, each with who, when, why and on what evidence.",
)

Target = Annotated[str, typer.Argument(help="run or implementation: digest or its beginning")]
Author = Annotated[str, typer.Option(help="who says so, e.g. 'Name <address>'")]
Reason = Annotated[str, typer.Option(help="why, in one or two sentences")]
Evidence = Annotated[str, typer.Option(help="http(s) link to the evidence")]
EffectiveAt = Annotated[
    str | None, typer.Option("--at", help="time from which it holds, ISO 8601 with a zone")
]


@correct.callback()
def from_file(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="JSON lines, one correction a line; docs/corrections.md"),
    ] = None,
    json: Json = False,
) -> None:
    """Publish corrections: append-only, each with who, when, why and on what evidence."""
    if file is None:
        if context.invoked_subcommand is None:
            fail("name retract, supersede or attest, or give --file")
        return
    if context.invoked_subcommand is not None:
        fail("--file stands alone, without retract, supersede or attest")
    with errors_as_lines():
        try:
            data = file.read_bytes()
        except OSError as error:
            fail(f"{file}: cannot be read ({error.strerror})")
        _publish(parse_corrections(data, str(file)), str(file), json)


@correct.command("retract")
def retract(
    target: Target,
    author: Author,
    reason: Reason,
    evidence: Evidence,
    at: EffectiveAt = None,
    json: Json = False,
) -> None:
    """Withdraw a run or implementation from every ranking; its evidence stays."""
    _one(Action.RETRACT, target, None, author, reason, evidence, at, json)


@correct.command("supersede")
def supersede(
    target: Target,
    by: Annotated[str, typer.Option("--by", help="what takes its place, of the same kind")],
    author: Author,
    reason: Reason,
    evidence: Evidence,
    at: EffectiveAt = None,
    json: Json = False,
) -> None:
    """Put another run or implementation in the place of this one."""
    _one(Action.SUPERSEDE, target, by, author, reason, evidence, at, json)


@correct.command("attest")
def attest(
    target: Target,
    author: Author,
    reason: Reason,
    evidence: Evidence,
    at: EffectiveAt = None,
    json: Json = False,
) -> None:
    """Note a reproduction or remark; it never changes the evidence level or a rank."""
    _one(Action.ATTEST, target, None, author, reason, evidence, at, json)


def _one(
    action: Action,
    target: str,
    by: str | None,
    author: str,
    reason: str,
    evidence: str,
    at: str | None,
    json: bool,
) -> None:
    kinds = (Kind.RUN, Kind.IMPLEMENTATION)
    with errors_as_lines():
        with open_database(open_warehouse().root) as connection:
            found = find(connection, target, kinds)
            replacement = find(connection, by, (found.kind,)) if by else None
        try:
            correction = Correction.model_validate(
                {
                    "action": action,
                    "target": found.digest,
                    "target_kind": str(found.kind),
                    "replacement": replacement.digest if replacement else None,
                    "author": author,
                    "reason": reason,
                    "evidence_url": evidence,
                    "effective_at": datetime.fromisoformat(at) if at else None,
                }
            )
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            field = str(problem["loc"][0]) if problem["loc"] else "correction"
            fail(f"{field}: {problem['msg'].removeprefix('Value error, ')}")
        except ValueError as error:
            fail(f"--at: {error}")
        _publish([LocatedCorrection(correction=correction, line=1)], "correction", json)


def _publish(located: list[LocatedCorrection], name: str, json: bool) -> None:
    # Only here: building needs every file under sql/, which takes a while to read.
    from assets.leaderboards.index import build_if_needed

    warehouse = open_warehouse()
    ranked_before = _ranked_runs()
    record = publish_corrections(warehouse, located, name)
    # Not only where this brought something: an earlier command may have died before the build.
    if record is not None:
        say("building the database anew")
    built = build_if_needed(warehouse, say)
    say_what_is_set_aside(warehouse)
    new = record.tables["corrections"].rows if record else 0
    ranked_after = _ranked_runs()
    if json:
        print_json(
            {
                "publication": record.publication_id if record else None,
                "published": new,
                "known": len(located) - new,
                "ranked_runs_before": ranked_before,
                "ranked_runs_after": ranked_after,
            }
        )
        return
    if record is None:
        show("Nothing new: every one of these corrections is already published.")
        if built:
            show("The database was older than what is published, and was built anew.")
            show(f"Ranked runs: {ranked_before} before, {ranked_after} now.")
        return
    show(f"Published {new} of {len(located)} as {record.publication_id}.")
    for item in located:
        correction = item.correction
        by = f" by {short(correction.replacement)}" if correction.replacement else ""
        show(f"  {correction.action} {short(correction.target)}{by}: {correction.reason}")
    show(f"Ranked runs: {ranked_before} before, {ranked_after} now.")


def _ranked_runs() -> int:
    with open_database(open_warehouse().root) as connection:
        [(number,)] = connection.execute("select count(*) from ranked_runs").fetchall()
        return int(number)
