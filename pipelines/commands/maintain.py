"""`kernelindex doctor` and `compact`: is everything as it should be, and is it tidy."""

import sys
from datetime import timedelta
from typing import Annotated

import duckdb
import typer

from assets.tables.errors import WarehouseError
from assets.tables.findings import Examination, Fault, Finding, Level
from assets.tables.warehouse import Warehouse
from pipelines.commands.index import Json, errors_as_lines, open_warehouse
from pipelines.commands.output import ANSWER_IS_NO, fail, print_json, program, say, show

_OLDEST_PYTHON = (3, 11)
_ROUNDS = 5


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="put right what can be put right")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="compare names, sizes and records; read no content")
    ] = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="PUBLICATION",
            help="give up what is lost of a publication, on record, and repair the rest",
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="why the loss is accepted")] = "",
    put_back: Annotated[
        str | None,
        typer.Option(
            "--readmit",
            metavar="PUBLICATION",
            help="put a publication back that was set aside (identifier or number)",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Examine the installation and the warehouse; exit 1 if anything is wrong."""
    if accept and not reason.strip():
        fail("--accept-loss needs --reason, which is kept with it")
    if reason and not accept:
        fail("--reason goes with --accept-loss")
    impossible: list[str] = []
    with errors_as_lines():
        warehouse = open_warehouse()
        done = _accepted(warehouse, accept or [], reason)
        if put_back is not None:
            again, impossible = _readmit(warehouse, put_back)
            done += again
        found = examine(warehouse, quick=quick)
        if (repair or accept) and found.findings:
            found, repaired, refused = _repair(warehouse, found, quick=quick)
            done += repaired
            impossible += refused
    if json:
        print_json(
            {
                "ok": not found.errors,
                "installation": _installation(),
                "looked_at": found.looked_at,
                "findings": [finding.as_json() for finding in found.findings],
                "repaired": done,
                "not_repaired": impossible,
            }
        )
    else:
        _print(found, done, impossible, repair or bool(accept))
    if found.errors:
        raise typer.Exit(ANSWER_IS_NO)


def examine(warehouse: Warehouse, *, quick: bool = False) -> Examination:
    """Look at files, rows and database, each as far as the one before allows."""
    # Only here: these read every file under sql/, which takes a while.
    from assets.leaderboards.reproduction import examine_database
    from assets.tables.integrity import examine_files
    from assets.tables.row_checks import examine_rows
    from assets.tables.set_aside import findings

    aside = Examination(findings(warehouse))
    found = examine_files(warehouse, read_bytes=not quick)
    # Rows of damaged files cannot be read; what they would say is known already.
    if found.errors and not _only_raw(found.errors):
        _merge(found, aside)
        return found
    try:
        if not quick:
            _merge(found, examine_rows(warehouse))
        # A database that differs because a rule is broken is no finding of its own.
        whole = _only_raw(found.errors)
        _merge(found, examine_database(warehouse, rebuild=not quick and whole))
    except (duckdb.Error, WarehouseError) as error:
        first_line = str(error).splitlines()[0]
        found.findings.append(
            Finding(Fault.DAMAGED_FILE, Level.ERROR, str(warehouse.root), first_line)
        )
    _merge(found, aside)
    return found


def _readmit(warehouse: Warehouse, publication: str) -> tuple[list[str], list[str]]:
    from assets.leaderboards.index import readmit

    again = readmit(warehouse, publication, say)
    if again is None:
        return [f"publication {publication}: is in the index again"], []
    return [], [
        f"publication {again.publication_id}: still breaks {again.statement}, so it was set aside "
        f"again ({again.error})"
    ]


def _only_raw(errors: list[Finding]) -> bool:
    raw = (Fault.DAMAGED_RAW, Fault.MISSING_RAW, Fault.MISSING_SNAPSHOT)
    return all(finding.fault in raw for finding in errors)


def _merge(found: Examination, more: Examination) -> None:
    found.findings += more.findings
    for what, number in more.looked_at.items():
        found.count(what, number)


def _accepted(warehouse: Warehouse, publications: list[str], reason: str) -> list[str]:
    if not publications:
        return []
    from assets.tables.acceptance import accept_loss

    return [accept_loss(warehouse, publication, reason) for publication in publications]


def _repair(
    warehouse: Warehouse, found: Examination, *, quick: bool
) -> tuple[Examination, list[str], list[str]]:
    """Repair until there is nothing more to do: what was damaged can hide what else is."""
    from assets.tables.repair import repair_files

    done: dict[str, None] = {}
    impossible: list[str] = []
    for _ in range(_ROUNDS):
        repairs = repair_files(warehouse, found.findings)
        found = examine(warehouse, quick=quick)
        built, refused = _built(warehouse, found)
        if built:
            found = examine(warehouse, quick=quick)
        done |= dict.fromkeys([*repairs.done, *built])
        impossible = [*repairs.impossible, *refused]
        if not (repairs.done or built) or not found.findings:
            break
    return found, list(done), impossible


def _built(warehouse: Warehouse, found: Examination) -> tuple[list[str], list[str]]:
    from assets.leaderboards.index import build_index
    from assets.tables.repair import REBUILT_BY_BUILD

    if not any(finding.fault in REBUILT_BY_BUILD for finding in found.findings):
        return [], []
    try:
        build_index(warehouse, say=say)
    except WarehouseError as error:
        return [], [f"{warehouse.database}: {error.message}"]
    return [f"{warehouse.database}: built anew from the publications"], []


def _installation() -> dict[str, object]:
    import importlib.metadata

    names = ("kernelindex-pipeline", "dagster", "duckdb", "pyarrow", "pydantic")
    versions: dict[str, object] = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def _print(found: Examination, done: list[str], impossible: list[str], repair: bool) -> None:
    versions = ", ".join(
        f"{name} {version}" for name, version in _installation().items() if version is not None
    )
    show(versions)
    looked = ", ".join(f"{number:,} {what}" for what, number in found.looked_at.items())
    show(f"looked at {looked or 'nothing'}")
    for text in done:
        show(f"repaired  {text}", "green")
    for text in impossible:
        show(f"not repaired  {text}", "bold red")
    for finding in found.findings:
        _print_finding(finding)
    if found.errors:
        show(f"\n{len(found.errors)} error{'s' * (len(found.errors) != 1)}", "bold red")
        if not repair:
            show(f"{program()} doctor --repair  puts right what can be put right")
    else:
        warnings = len(found.findings)
        show("everything is as it should be" if not warnings else f"no errors, {warnings} to note")


def _print_finding(finding: Finding) -> None:
    style = "red" if finding.level is Level.ERROR else "yellow"
    show(f"\n{finding.level}  {finding.fault}  {finding.where}", style)
    count = f" ({finding.count:,})" if finding.count > 1 else ""
    show(f"  {finding.message}{count}")
    for example in finding.examples:
        show(f"  e.g. {example}")


def compact_publications(
    keep_days: Annotated[
        float, typer.Option(min=0, help="days that replaced files stay for readers of before")
    ] = 7.0,
    at_least: Annotated[
        int, typer.Option(min=1, help="fewest publications that are worth rewriting")
    ] = 2,
    json: Json = False,
) -> None:
    """Rewrite small publications into one generation, and remove replaced files nobody reads."""
    from assets.tables.compaction import compact, remove_replaced

    with errors_as_lines():
        warehouse = open_warehouse()
        done = compact(warehouse, at_least=at_least)
        removal = remove_replaced(warehouse, timedelta(days=keep_days))
    if json:
        print_json(
            {
                "generation": done.generation.number if done else None,
                "publications": len(done.generation.publications) if done else 0,
                "files_before": done.files_before if done else None,
                "files_after": done.files_after if done else None,
                "removed": [str(path) for path in removal.removed],
                "kept": [{"folder": str(path), "reason": reason} for path, reason in removal.kept],
            }
        )
        return
    if done is None:
        show("Nothing to compact.")
    else:
        show(
            f"Generation {done.generation.number}: {len(done.generation.publications)} "
            f"publications, {done.files_before} files before, {done.files_after} now."
        )
    if removal.removed:
        show(f"Removed {len(removal.removed)} replaced folders.")
    if removal.kept:
        reasons = sorted({reason for _, reason in removal.kept})
        show(f"Kept {len(removal.kept)} replaced folders: {'; '.join(reasons)}.")
    say("the database is as it was; history and --as-of lose nothing")
