"""The `kernelindex` command: one module per command group, gathered here.

Exit codes: 0 fine, 1 the answer is no (not found, not comparable, a check failed), 2 wrong usage
or input.
"""

import gc
import os
import sys

import typer

from pipelines.commands import (
    correct,
    export,
    ingest,
    maintain,
    quarantine,
    query,
    rerun,
    server,
    show,
    site,
    status,
    top,
)
from pipelines.commands.output import WRONG_INPUT, speak_any_language, stderr

ASK = "Ask"
RUN = "Run"
VERIFY = "Verify on a GPU"
KEEP = "Keep in order"

app = typer.Typer(
    name="kernelindex",
    help="A local, trustworthy index of GPU kernel benchmark results.",
    epilog="Exit codes: 0 fine, 1 the answer is no, 2 wrong usage or input.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("ingest", rich_help_panel=RUN)(ingest.ingest)
app.command("dev", rich_help_panel=RUN)(server.dev)
app.command("status", rich_help_panel=ASK)(status.status)
app.command("top", rich_help_panel=ASK)(top.top)
app.command("show", rich_help_panel=ASK)(show.show_one)
app.command("compare", rich_help_panel=ASK)(show.compare_two)
app.command("resolve", rich_help_panel=ASK)(show.resolve_best)
app.command("source", rich_help_panel=ASK)(show.source)
app.command("site", rich_help_panel=ASK)(site.site)
app.command("query", rich_help_panel=ASK)(query.query)
app.command("revisions", rich_help_panel=ASK)(status.revisions)
app.command("export", rich_help_panel=ASK)(export.export)
app.command("verify-catalog", rich_help_panel=ASK)(export.verify)
app.add_typer(rerun.rerun, name="rerun", rich_help_panel=VERIFY)
app.command("quarantine", rich_help_panel=KEEP)(quarantine.quarantine)
app.add_typer(correct.correct, name="correct", rich_help_panel=KEEP)
app.command("doctor", rich_help_panel=KEEP)(maintain.doctor)
app.command("compact", rich_help_panel=KEEP)(maintain.compact_publications)


def as_text(argument: str) -> str:
    """An argument as UTF-8, which is what files and names are in, whatever the locale says.

    One that is not UTF-8 ends the program with one line.
    """
    try:
        return os.fsencode(argument).decode()
    except UnicodeDecodeError:
        stderr.print(f"error: the argument {argument!a} is not UTF-8", markup=False)
        sys.exit(WRONG_INPUT)


def main() -> None:
    """Entry point of the console script."""
    # Modules are no garbage, and to look through all of Dagster's again and again costs an
    # ingestion a tenth of its time.
    gc.freeze()
    speak_any_language()
    sys.argv[1:] = [as_text(argument) for argument in sys.argv[1:]]
    app()


if __name__ == "__main__":
    main()
