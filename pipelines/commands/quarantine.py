"""`kernelindex quarantine`: what was not published, why, and what to do about it."""

import difflib
from typing import Annotated

import typer

from assets.answers.values import json_value
from assets.manifests.quarantine import Reason
from pipelines.commands.index import AsOf, Json, open_index
from pipelines.commands.output import add_row, fail, no, print_json, program, show, stdout, table

_SHOWN_ITEMS = 20


def _complete_reason(incomplete: str) -> list[str]:
    return [str(reason) for reason in Reason if reason.startswith(incomplete.upper())]


def quarantine(
    reason: Annotated[
        str | None,
        typer.Option(help="list the items of this reason", autocompletion=_complete_reason),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            help="say what a reason means and what to do", autocompletion=_complete_reason
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="items shown")] = _SHOWN_ITEMS,
    json: Json = False,
    as_of: AsOf = None,
) -> None:
    """Show what still stands in quarantine, by reason."""
    if explain is not None and reason is not None:
        fail("--explain and --reason contradict each other")
    if explain is not None:
        code = _reason(explain)
        if json:
            print_json({"reason": str(code), "explanation": code.explanation})
        else:
            show(f"{code}: {code.explanation}")
        return
    if reason is None:
        _by_reason(json, as_of)
    else:
        _items(_reason(reason), limit, json, as_of)


def _reason(text: str) -> Reason:
    codes = {str(reason): reason for reason in Reason}
    code = codes.get(text.upper())
    if code is None:
        close = difflib.get_close_matches(text.upper(), codes, n=5, cutoff=0.4)
        no(f"{text}: no such reason", close or codes)
    return code


def _by_reason(json: bool, as_of: str | None) -> None:
    with open_index(as_of) as connection:
        rows = connection.execute(
            """
            select
                reason,
                severity,
                count(*) as items,
                count(distinct (dataset, path)) as files,
                min(first_seen) as first_seen,
                max(last_seen) as last_seen
            from quarantine
            group by reason, severity
            order by severity, items desc, reason
            """
        ).fetchall()
    names = ("reason", "severity", "items", "files", "first_seen", "last_seen")
    if json:
        print_json([_object(names, row) for row in rows])
        return
    if not rows:
        show("Nothing is in quarantine.")
        return
    made = table(
        [
            ("reason", "left"),
            ("severity", "left"),
            ("items", "right"),
            ("files", "right"),
            ("first seen", "left"),
        ]
    )
    for code, severity, items, files, first_seen, _ in rows:
        add_row(made, code, severity, items, files, f"{first_seen:%Y-%m-%d}" if first_seen else "")
    stdout.print(made)
    show(f"{program()} quarantine --reason {rows[0][0]}   lists the items")
    show(f"{program()} quarantine --explain {rows[0][0]}  says what to do")


def _items(reason: Reason, limit: int, json: bool, as_of: str | None) -> None:
    names = (
        "reason",
        "severity",
        "kind",
        "dataset",
        "revision",
        "path",
        "line",
        "json_path",
        "message",
        "excerpt",
        "first_seen",
        "last_seen",
    )
    with open_index(as_of) as connection:
        rows = connection.execute(
            f"select {', '.join(names)} from quarantine where reason = ? "
            "order by dataset, path, line, json_path",
            [str(reason)],
        ).fetchall()
    if json:
        print_json([_object(names, row) for row in rows])
        return
    show(f"{reason}: {reason.explanation}", "bold")
    if not rows:
        show("Nothing is in quarantine for this reason.")
        return
    for row in rows[:limit]:
        item = dict(zip(names, row, strict=True))
        show(f"\n{item['path']}:{item['line']}  {item['json_path']}")
        show(f"  {item['message']}")
        if item["excerpt"]:
            show(f"  {' '.join(item['excerpt'].split())[:160]}")
    if len(rows) > limit:
        show(f"\n{len(rows) - limit} more; --limit {len(rows)} shows all")


def _object(names: tuple[str, ...], row: tuple[object, ...]) -> dict[str, object]:
    return {name: json_value(value) for name, value in zip(names, row, strict=True)}
