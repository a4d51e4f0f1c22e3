"""Reading trace files with several processes.

Each process is `reading_process` run as a program: it gets the catalog once, then chunks of
files, and answers with what it found; rows go to Parquet parts, not through the pipe. Processes
are started before the catalog is read, so that they import their modules meanwhile, and share
nothing with the threads of the starting process. `multiprocessing` is not used because its
children first import the program that started them, which here may be all of Dagster.
"""

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import BinaryIO, cast

from assets.manifests.catalog import Catalog
from assets.manifests.trace_files import FileOutcome, TraceReader
from assets.manifests.trace_rows import TraceRows
from assets.traces.errors import DatasetError
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetFile

_LARGEST_CHUNK_BYTES = 16 * 1024 * 1024
_SMALLEST_CHUNK_BYTES = 1024 * 1024
_CHUNKS_A_PROCESS = 6

Chunk = tuple[int, list[DatasetFile]]
Report = Callable[[list[FileOutcome]], None]


@dataclass(frozen=True)
class Reading:
    """What every reader needs: names resolve in the catalog, parts go to the staging folder."""

    catalog: Catalog
    store_root: Path
    staging: Path
    snapshot_id: str


class ChunkReader:
    """Reads chunks of trace files and writes one part per chunk."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._store = RawStore(reading.store_root)
        self._reader = TraceReader(reading.catalog)

    def read(self, chunk: Chunk) -> list[FileOutcome]:
        """Write the rows of a chunk and say what was found in each file."""
        number, files = chunk
        origin = self._reading.catalog.origin
        batch = TraceRows(origin.dataset, origin.revision)
        outcomes = [self._reader.read(file, self._store.get(file.digest), batch) for file in files]
        part = f"{self._reading.snapshot_id[7:19]}-traces-{number:06d}"
        batch.write(self._reading.staging, part)
        return outcomes


def chunks_of(files: Sequence[DatasetFile], processes: int) -> list[Chunk]:
    """Files in chunks of a few megabytes, enough of them to keep every process busy.

    The largest come first, so that no process has much left to do when the others are done.
    """
    share = sum(file.size_bytes for file in files) // (processes * _CHUNKS_A_PROCESS)
    limit_bytes = min(max(share, _SMALLEST_CHUNK_BYTES), _LARGEST_CHUNK_BYTES)
    chunks: list[Chunk] = []
    size_bytes = limit_bytes
    for file in files:
        if size_bytes >= limit_bytes:
            chunks.append((len(chunks), []))
            size_bytes = 0
        chunks[-1][1].append(file)
        size_bytes += file.size_bytes
    return sorted(chunks, key=_size_bytes, reverse=True)


def _size_bytes(chunk: Chunk) -> int:
    return sum(file.size_bytes for file in chunk[1])


class ReadingProcesses:
    """Processes that were started and wait for the catalog."""

    def __init__(self, processes: Sequence["subprocess.Popen[bytes]"]) -> None:
        self._processes = processes

    def read(self, reading: Reading, chunks: Sequence[Chunk], report: Report) -> None:
        """Read all chunks, each by whichever process is free; `report` is called in one thread.

        Raises:
            DatasetError: a damaged raw file, or a reading process that died.
        """
        state = pickle.dumps(reading)
        waiting: SimpleQueue[Chunk] = SimpleQueue()
        found: SimpleQueue[list[FileOutcome] | DatasetError] = SimpleQueue()
        for chunk in chunks:
            waiting.put(chunk)
        with ThreadPoolExecutor(len(self._processes)) as pool:
            for process in self._processes:
                pool.submit(_feed, process, state, waiting, found)
            for _ in chunks:
                outcome = found.get()
                if isinstance(outcome, DatasetError):
                    self.stop()
                    raise outcome
                report(outcome)

    def stop(self) -> None:
        """End the processes at once."""
        for process in self._processes:
            process.kill()


@contextmanager
def reading_processes(number: int) -> Iterator[ReadingProcesses]:
    """Start processes; they end with the block."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes += [
            subprocess.Popen(
                [sys.executable, "-m", "assets.manifests.reading_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            for _ in range(number)
        ]
        yield ReadingProcesses(processes)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            # What a dead process was still to be told is of no use.
            with suppress(OSError):
                process.communicate()


def _feed(
    process: "subprocess.Popen[bytes]",
    state: bytes,
    waiting: "SimpleQueue[Chunk]",
    found: "SimpleQueue[list[FileOutcome] | DatasetError]",
) -> None:
    requests, answers = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
    try:
        _send(requests, state)
        while True:
            _send(requests, pickle.dumps(waiting.get_nowait()))
            found.put(pickle.load(answers))
    except Empty:
        return
    except (OSError, EOFError):
        found.put(
            DatasetError(
                "a process that reads traces died, perhaps for want of memory; ingest again"
            )
        )


def _send(stream: BinaryIO, data: bytes) -> None:
    stream.write(len(data).to_bytes(8, "big") + data)
    stream.flush()


def _receive(stream: BinaryIO) -> bytes | None:
    length = stream.read(8)
    return stream.read(int.from_bytes(length, "big")) if length else None


def serve() -> None:
    """Serve chunks from stdin to stdout until stdin ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever prints must not get between the answers.
    os.dup2(2, 1)
    state = _receive(requests)
    if state is None:
        return
    reader = ChunkReader(pickle.loads(state))
    # Rows have no reference cycles, and a search for some goes through all rows so far, again and
    # again: a fifth of the time of reading. Errors may have some; they are found between chunks.
    gc.disable()
    gc.freeze()
    while (data := _receive(requests)) is not None:
        try:
            answer: list[FileOutcome] | DatasetError = reader.read(pickle.loads(data))
        except DatasetError as error:
            answer = DatasetError(error.message)
        pickle.dump(answer, answers)
        answers.flush()
        gc.collect()
