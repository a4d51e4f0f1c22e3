"""Launch the `ingest` job in this process, so that the run stands in Dagster's history."""

import logging
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg
from alembic.util import CommandError
from rich.console import Console
from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from assets.tables.ingestion import IngestionReport
from assets.tables.warehouse import Warehouse
from assets.traces.asset import DatasetConfig
from assets.traces.untrusted_text import visible_line
from pipelines.definitions import build_definitions
from pipelines.history import tidy
from pipelines.instance import prepare_home
from pipelines.jobs import INGEST
from pipelines.liveness import alive
from pipelines.settings import Keeping, Settings

_LOGGER = "terminal"


class IngestError(Exception):
    """An ingestion that failed; the message is the one of the step that did."""


@dataclass(frozen=True)
class IngestRequest:
    """What to ingest; None means the job's defaults."""

    dataset: str
    revision: str | None = None
    authors: tuple[str, ...] = ()
    with_tensors: bool = False
    name: str | None = None


def run_ingest(
    settings: Settings,
    request: IngestRequest,
    show: Callable[[str], None] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> IngestionReport:
    """Run the job and return what it did.

    `show` is told what is going on, `note` what to know of the settings in DAGSTER_HOME.

    Raises:
        IngestError: a step failed; nothing half-done was published.
        InstanceError: DAGSTER_HOME cannot be used.
        SettingsError: a variable's value cannot be used.
    """
    for line in prepare_home(settings.dagster_home):
        note(line)
    definitions = build_definitions(settings, loggers={_LOGGER: _terminal_logger(show)})
    run_config = dg.RunConfig(
        ops={
            "trace_files": DatasetConfig(
                dataset=request.dataset,
                revision=request.revision,
                authors=list(request.authors),
                with_tensors=request.with_tensors,
                name=request.name,
            )
        },
        loggers={_LOGGER: {}},
    )
    run_id = str(uuid.uuid4())
    with _history_of(settings), dg.DagsterInstance.get() as instance:
        tidy(instance, settings.dagster_home, Keeping.from_environment())
        with alive(settings.dagster_home, run_id, "The command line's ingest"):
            result = definitions.resolve_job_def(INGEST).execute_in_process(
                run_config=run_config,
                instance=instance,
                run_id=run_id,
                raise_on_error=False,
                tags={"kernelindex/launched_by": "command line"},
            )
    if not result.success:
        raise IngestError(_failure_of(result))
    return IngestionReport.load(Warehouse(settings.warehouse).root, result.run_id)


@contextmanager
def _history_of(settings: Settings) -> Iterator[None]:
    """Say in one line that Dagster could not write what it keeps of a run."""
    try:
        yield
    except (OSError, sqlite3.Error, SQLAlchemyError, CommandError) as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise IngestError(
            f"{settings.dagster_home}: Dagster's history cannot be written ({first_line}); make "
            "room, or choose a folder with DAGSTER_HOME"
        ) from error


def _failure_of(result: dg.ExecuteInProcessResult) -> str:
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            if data.user_failure_data and data.user_failure_data.description:
                return data.user_failure_data.description
            error = data.error
            while error is not None and error.cause is not None:
                error = error.cause
            return error.message.strip() if error else "a step failed"
    return "the run failed before its first step"


class _Relay(logging.Handler):
    """Passes what assets log on to the terminal."""

    def __init__(self, show: Callable[[str], None] | None) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Show the step and the message."""
        meta = getattr(record, "dagster_meta", None) or {}
        if self._show is not None and meta.get("step_key"):
            message = meta.get("orig_message") or record.getMessage()
            self._show(f"{meta['step_key']}: {message}")


def _terminal_logger(show: Callable[[str], None] | None) -> dg.LoggerDefinition:
    def terminal(_: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("kernelindex", logging.INFO)
        logger.addHandler(_Relay(show))
        return logger

    return dg.LoggerDefinition(terminal, description="Shows progress in the terminal")


@contextmanager
def progress_on(console: Console) -> Iterator[Callable[[str], None] | None]:
    """A line that says what is going on, where the console is a terminal."""
    if not console.is_terminal:
        yield None
        return
    with console.status("starting") as status:
        yield lambda message: status.update(Text(visible_line(message)))
