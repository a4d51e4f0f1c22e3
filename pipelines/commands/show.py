"""`kernelindex show`, `compare`, `resolve` and `source`: one thing, two things, the best thing."""

import textwrap
from datetime import UTC, datetime
from typing import Annotated

import typer

from assets.answers.citations import citation
from assets.answers.comparison import Comparison, GroupComparison, compare
from assets.answers.dossiers import dossier
from assets.answers.errors import NoAnswerError
from assets.answers.lookup import Kind, find, short
from assets.answers.resolution import Resolution, Result, parse_axes, resolve
from assets.answers.sections import Dossier
from assets.answers.stored import artifact, shown_manifest
from assets.answers.units import latency_text, ratio_text
from pipelines.commands.index import (
    AsOf,
    Json,
    Raw,
    complete_gpu,
    complete_operation,
    open_index,
    open_warehouse,
)
from pipelines.commands.output import (
    ANSWER_IS_NO,
    add_row,
    fail,
    print_json,
    program,
    say,
    show,
    stdout,
    table,
    write_text,
)

_LABEL_WIDTH = 27


def show_one(
    name: Annotated[
        str, typer.Argument(help="digest, its beginning, an external identifier, or a name")
    ],
    manifest: Annotated[
        bool, typer.Option("--manifest", help="print the canonical manifest as JSON")
    ] = False,
    cite: Annotated[bool, typer.Option("--cite", help="print how to cite it")] = False,
    json: Json = False,
    as_of: AsOf = None,
) -> None:
    """Show everything known of a run, implementation, workload, operation or environment."""
    if manifest and cite:
        fail("--manifest and --cite contradict each other")
    with open_index(as_of) as connection:
        found = find(connection, name)
        if cite:
            parts = citation(connection, found, datetime.now(UTC))
            print_json(parts) if json else show(parts["text"])
            return
        if manifest:
            print_json(shown_manifest(open_warehouse(), found), indent=2)
            return
        result = dossier(connection, found)
    if json:
        print_json(result.as_json())
    else:
        _print_dossier(result)


def _print_dossier(result: Dossier) -> None:
    show(f"{result.found.kind} {short(result.found.digest)}")
    show(result.title, "bold")
    for line in result.headline:
        show(line)
    for section in result.sections:
        show(f"\n{section.title}", "bold")
        for label, value in section.fields:
            # Words are wrapped; a digest or a path stays whole, so that it can be copied.
            width = max(stdout.width - _LABEL_WIDTH - 2, 20)
            lines = textwrap.wrap(value, width, break_long_words=False, break_on_hyphens=False)
            for number, line in enumerate(lines or [value]):
                show(f"  {label if number == 0 else '':<{_LABEL_WIDTH}}{line}")
    show(f"\nmanifest: {program()} show {short(result.found.digest)} --manifest")
    show(f"cite:     {program()} show {short(result.found.digest)} --cite")


def compare_two(
    a: Annotated[str, typer.Argument(help="a run or an implementation")],
    b: Annotated[str, typer.Argument(help="another one")],
    json: Json = False,
    as_of: AsOf = None,
) -> None:
    """Say which of two is faster and by how much; refuse where they are not comparable."""
    kinds = (Kind.RUN, Kind.IMPLEMENTATION)
    with open_index(as_of) as connection:
        first, second = find(connection, a, kinds), find(connection, b, kinds)
        result = compare(connection, first, second)
    if json:
        print_json(result.as_json())
    else:
        _print_comparison(result)
    if not result.is_comparable:
        raise typer.Exit(ANSWER_IS_NO)


def _print_comparison(result: Comparison) -> None:
    show(f"A  {result.kind} {short(result.a.digest)}  {result.a.name}")
    show(f"B  {result.kind} {short(result.b.digest)}  {result.b.name}")
    if not result.is_comparable:
        show("\nNot comparable:", "bold")
        made = table([("what", "left"), ("A", "fold"), ("B", "fold")])
        for mismatch in result.mismatches:
            add_row(made, mismatch.what, mismatch.a, mismatch.b)
        stdout.print(made)
        return
    made = table(
        [("workload", "fold"), ("GPU", "fold"), ("A", "right"), ("B", "right"), ("", "left")]
    )
    for group in result.groups:
        add_row(
            made,
            group.workload,
            group.gpu_product,
            latency_text(group.a.value_ns),
            latency_text(group.b.value_ns),
            _verdict(group),
        )
    stdout.print(made)
    ratio = result.ratio
    if len(result.groups) > 1 and ratio is not None:
        wins_a = sum(group.faster == "a" for group in result.groups)
        wins_b = sum(group.faster == "b" for group in result.groups)
        show(f"A is faster in {wins_a}, B in {wins_b} of {len(result.groups)} groups")
        show(f"over all of them {_faster(ratio)} (geometric mean)")


def _verdict(group: GroupComparison) -> str:
    text = "equal" if group.faster is None else _faster(group.ratio)
    repeated = group.a.repeats > 1 or group.b.repeats > 1
    return f"{text}, ranges overlap" if repeated and group.overlap else text


def _faster(ratio: float) -> str:
    if ratio == 1:
        return "equal"
    name, factor = ("A", ratio) if ratio > 1 else ("B", 1 / ratio)
    return f"{name} is {ratio_text(factor)} as fast"


def resolve_best(
    operation: Annotated[
        str,
        typer.Option("--operation", "-o", help="name or digest", autocompletion=complete_operation),
    ],
    axes: Annotated[
        str | None, typer.Option(help="bound axes as a=1,b=2; absent ones may be any")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="a dtype of the inputs, e.g. bf16")] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="words of the device's name", autocompletion=complete_gpu),
    ] = None,
    json: Json = False,
    as_of: AsOf = None,
) -> None:
    """Find the best published kernel for a shape and device; near ones are named as such."""
    with open_index(as_of) as connection:
        result = resolve(connection, operation, parse_axes(axes), dtype, gpu)
    if json:
        print_json(result.as_json())
    else:
        _print_resolution(result)


def _print_resolution(result: Resolution) -> None:
    show(result.operation.name, "bold")
    if result.exact:
        show("exact; the best of each group, groups are not ranked against each other")
        for item in result.exact:
            _print_result(item)
        return
    show("nothing exact; near results, each differs as it says:")
    for item in result.near:
        _print_result(item)
        for difference in item.differences:
            show(f"  ! {difference.what}: asked {difference.asked}, this is {difference.found}")


def _print_result(item: Result) -> None:
    show(f"\n{item.solution}  {latency_text(item.median_ns)}", "bold")
    show(f"  {item.workload} · {', '.join(item.dtypes)}")
    show(f"  {item.gpu_product} · {item.environment}")
    show(
        f"  {item.author} · {item.language} · licence {item.license or 'none concluded'} · "
        f"best of {item.group_size}, median of {item.repeats}"
    )
    if item.caveats:
        show(f"  caveats: {', '.join(item.caveats)}")
    show(f"  run {short(item.run_digest)} · implementation {short(item.implementation_digest)}")


def source(
    name: Annotated[str, typer.Argument(help="an implementation or one of its runs")],
    raw: Raw = False,
    json: Json = False,
    as_of: AsOf = None,
) -> None:
    """Print the kept source of an implementation; its licence goes to stderr.

    In a terminal, characters that cannot be seen are shown as escapes; --raw prints them as they
    are, as does any other place that the output goes to.
    """
    with open_index(as_of) as connection:
        found = find(connection, name, (Kind.IMPLEMENTATION, Kind.RUN))
        row = connection.execute(_SOURCE[found.kind], [found.digest]).fetchall()[0]
        digest, file_name, concluded, declared, solution, path = row
        if digest is None:
            raise NoAnswerError(f"{found.kind} {short(found.digest)}: no source was kept")
        kept = artifact(open_warehouse(), digest)
    if json:
        print_json(
            {
                "implementation": solution,
                "source_digest": digest,
                "file_name": file_name,
                "license_concluded": concluded,
                "license_declared": declared,
                "path": path,
                "content": kept.content,
            }
        )
    else:
        ending = "" if kept.content.endswith("\n") else "\n"
        write_text(kept.content + ending, raw=raw)
    say(f"{solution}, {file_name}, {digest}")
    if concluded:
        say(f"licence: {concluded}")
    else:
        say(
            "licence: none was concluded"
            + (f" (the dataset declares {declared})" if declared else "")
            + "; nobody granted a right to use this source"
        )


_SOURCE = {
    Kind.IMPLEMENTATION: """
        select source_digest, source_file_name, license_concluded, license_declared,
            solution_name, path
        from implementations where implementation_digest = ?
    """,
    Kind.RUN: """
        select source_digest, source_file_name, license_concluded, license_declared,
            implementations.solution_name, implementations.path
        from runs inner join implementations using (implementation_digest)
        where run_digest = ?
    """,
}
