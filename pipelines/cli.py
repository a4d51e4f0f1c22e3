"""The `kernelindex` command: one module per command group, gathered here.

Exit codes: 0 fine, 1 the answer is no (not found, not comparable, a check failed), 2 wrong usage
or input.
"""

import typer

from pipelines.commands import ingest, server

app = typer.Typer(
    name="kernelindex",
    help="A local, trustworthy index of GPU kernel benchmark results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("ingest")(ingest.ingest)
app.command("dev")(server.dev)


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
