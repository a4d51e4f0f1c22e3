"""`kernelindex top`: who is fastest at an operation, group by group."""

from typing import Annotated

import typer

from assets.answers.lookup import find_operation, short
from assets.answers.standings import Group, Standing, standing, told_apart
from assets.answers.units import count_text, latency_text, ratio_text
from pipelines.commands.index import AsOf, Json, complete_gpu, complete_operation, open_index
from pipelines.commands.output import add_row, print_json, program, show, stdout, table

_SHOWN_GROUPS = 12


def top(
    operation: Annotated[
        str,
        typer.Argument(
            help="definition name, slug, alias or digest", autocompletion=complete_operation
        ),
    ],
    gpu: Annotated[
        str | None,
        typer.Option(help="words of the device's name, e.g. H200", autocompletion=complete_gpu),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(help="identifier, digest, or bound axes as a=1,b=2"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="implementations shown a group")] = 10,
    json: Json = False,
    as_of: AsOf = None,
) -> None:
    """Rank the implementations of an operation in each comparison group (ranking-v2)."""
    with open_index(as_of) as connection:
        found = find_operation(connection, operation)
        result = standing(connection, found, gpu, workload)
    if json:
        print_json(_limited(result, limit))
    else:
        _print(result, limit)


def _limited(result: Standing, limit: int) -> dict[str, object]:
    for group in result.groups:
        del group.ranking[limit:]
    return result.as_json()


def _print(result: Standing, limit: int) -> None:
    show(f"{result.operation.name}  {short(result.operation.digest)}", "bold")
    # The groups in which most was tried say most.
    shown = sorted(result.groups, key=lambda group: -group.tried)[:_SHOWN_GROUPS]
    apart = told_apart(result.groups)
    for group in result.groups:
        if group in shown:
            _print_group(group, apart[group.strict_group], limit, f"{result.operation.name}_")
    hidden = len(result.groups) - len(shown)
    if hidden:
        show(f"\n{count_text(hidden, 'more group')}; narrow with --gpu or --workload, or --json")
    codes = sorted({code for group in shown for entry in group.ranking for code in entry.caveats})
    if codes:
        show(f"\ncaveats: {', '.join(codes)}")
        show(f'  {program()} query "select code, explanation from caveat_codes"')


def _print_group(group: Group, apart: str, limit: int, prefix: str) -> None:
    show(f"\n{group.axes} · {', '.join(group.dtypes)}", "bold")
    show(f"{group.gpu_product} · {group.environment}")
    if apart:
        show(apart)
    made = table(
        [
            ("#", "right"),
            ("implementation", "cut"),
            ("author", "cut"),
            ("median", "right"),
            ("vs #1", "right"),
            ("vs ref", "right"),
            ("runs", "right"),
            ("digest", "left"),
        ]
    )
    for entry in group.ranking[:limit]:
        add_row(
            made,
            f"{entry.rank}{'=' if entry.tied else ''}",
            entry.solution.removeprefix(prefix) + ("*" if entry.caveats else ""),
            ", ".join(entry.authors),
            latency_text(entry.median_ns),
            ratio_text(entry.slowdown),
            ratio_text(entry.speedup_over_reference),
            entry.repeats,
            short(entry.implementation_digest)[:8],
        )
    if group.ranking:
        stdout.print(made)
    left = len(group.ranking) - limit
    if left > 0:
        show(f"  {left} more; --limit {len(group.ranking)} shows all")
    if any(entry.caveats for entry in group.ranking[:limit]):
        show("  * " + "; ".join(_caveats(group, limit)))
    for item in group.not_ranked:
        why = "" if item.reason.startswith("STATUS_") else f", {item.reason}"
        runs = f"{count_text(item.runs, 'run')} {item.status}{why}"
        show(f"  not ranked: {item.solution.removeprefix(prefix)}: {runs}")


def _caveats(group: Group, limit: int) -> list[str]:
    by_code: dict[str, list[str]] = {}
    for entry in group.ranking[:limit]:
        for code in entry.caveats:
            by_code.setdefault(code, []).append(f"#{entry.rank}")
    return [f"{code}: {', '.join(places)}" for code, places in sorted(by_code.items())]
