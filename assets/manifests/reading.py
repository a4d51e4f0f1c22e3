"""Reading trace files with several processes.

`reading_process` is run as a program: it imports its modules while the catalog is read, gets the
catalog, and then forks into processes that get chunks of files and answer with what they found;
rows go to Parquet parts, not through the pipes. So modules and catalog are loaded once however
many processes there are, and nothing is shared with the threads of the starting process.
`multiprocessing` is not used because its children first import the program that started them,
which here may be all of Dagster.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO, cast

from assets.manifests.catalog import Catalog
from assets.manifests.rows import RowBatch
from assets.manifests.trace_files import FileOutcome, TraceReader
from assets.manifests.trace_rows import TraceRows
from assets.traces.errors import DatasetError
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetFile

_LARGEST_CHUNK_BYTES = 16 * 1024 * 1024
_SMALLEST_CHUNK_BYTES = 1024 * 1024
_CHUNKS_A_PROCESS = 6

# A reader allocates and frees the same megabytes again and again. Arrow's own pools and, in its
# default settings, glibc's malloc give them back to the system each time, and to get them anew
# takes a tenth of the time of reading.
_REUSED_BYTES = 4 * _LARGEST_CHUNK_BYTES
_MEMORY_SETTINGS = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(_REUSED_BYTES),
    "MALLOC_TRIM_THRESHOLD_": str(_REUSED_BYTES),
}

Chunk = tuple[int, list[DatasetFile]]


@dataclass(frozen=True)
class Writing:
    """A batch that the starting process made, to be written by a reading process.

    To make columns of rows, Arrow imports pandas where there is NumPy, as in the starting process;
    that takes longer than to write all operations and implementations.
    """

    batch: RowBatch
    staging: Path
    part: str

    def do(self) -> None:
        """Write it."""
        self.batch.write(self.staging, self.part)


Request = Chunk | Writing
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
        part = f"{self._reading.snapshot_id[7:19]}-traces-{number:06d}"
        batch = TraceRows(origin.dataset, origin.revision, self._reading.staging, part)
        outcomes = [
            self._reader.read(file, self._store.get(file.digest, file.size_bytes), batch)
            for file in files
        ]
        batch.finish()
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
        is_too_much = 2 * size_bytes > limit_bytes and size_bytes + file.size_bytes > limit_bytes
        if size_bytes >= limit_bytes or is_too_much:
            chunks.append((len(chunks), []))
            size_bytes = 0
        chunks[-1][1].append(file)
        size_bytes += file.size_bytes
    return sorted(chunks, key=_size_bytes, reverse=True)


def _size_bytes(chunk: Chunk) -> int:
    return sum(file.size_bytes for file in chunk[1])


class ReadingProcesses:
    """Processes that were started and wait for the catalog."""

    def __init__(self, program: "subprocess.Popen[bytes]", channels: Sequence["_Channel"]) -> None:
        self._program, self._channels = program, channels
        self._state = cast("BinaryIO", program.stdin)

    def read(
        self,
        reading: Reading,
        chunks: Sequence[Chunk],
        report: Report,
        also: Callable[[], Writing] | None = None,
    ) -> None:
        """Have each chunk read by whichever process is free; this thread calls `report`.

        What is to be written `also` is made while the first chunks are read.

        Raises:
            DatasetError: a damaged raw file, or a reading process that died.
        """
        waiting: SimpleQueue[Request | None] = SimpleQueue()
        found: SimpleQueue[list[FileOutcome] | BaseException] = SimpleQueue()

        def notice(feeding: Future[None]) -> None:
            if error := feeding.exception():
                found.put(error)

        for chunk in chunks:
            waiting.put(chunk)
        # A program that is gone is found by whoever waits for its answers.
        with suppress(OSError), self._state:
            pickle.dump(reading, self._state)
        with ThreadPoolExecutor(len(self._channels)) as pool:
            for channel in self._channels:
                pool.submit(_feed, channel, waiting, found).add_done_callback(notice)
            try:
                requests = len(chunks)
                if also is not None:
                    waiting.put(also())
                    requests += 1
                for _ in self._channels:
                    waiting.put(None)
                for _ in range(requests):
                    outcome = found.get()
                    if isinstance(outcome, BaseException):
                        raise outcome
                    report(outcome)
            except BaseException:
                # Else the pool would wait until all chunks are read, or for more of them.
                self.stop()
                for _ in self._channels:
                    waiting.put(None)
                raise

    def write(self, writing: Writing) -> None:
        """Have a batch written; only after `read`.

        Raises:
            DatasetError: the disk is full, say, or the process died.
        """
        _ask(self._channels[0], writing)

    def close(self) -> None:
        """Close what the catalog goes through, if it was never sent."""
        with suppress(OSError):
            self._state.close()

    def stop(self) -> None:
        """End the processes at once; when they are gone, nothing is written any more."""
        self._end()
        self._program.wait()

    def dismiss(self) -> None:
        """End processes that have nothing to do, without waiting until their memory is free."""
        self._end()
        Thread(target=self._program.wait).start()

    def _end(self) -> None:
        if self._program.returncode is None:
            # The group of the program: its children are in it, and it stays until they are gone.
            os.killpg(self._program.pid, signal.SIGTERM)


@dataclass(frozen=True)
class _Channel:
    """What the starting process writes to and reads from one reading process."""

    requests: BinaryIO
    answers: BinaryIO

    def close(self) -> None:
        # What a dead process was still to be told is of no use.
        with suppress(OSError):
            self.requests.close()
        self.answers.close()


@contextmanager
def reading_processes(number: int) -> Iterator[ReadingProcesses]:
    """Start processes; they have nothing more to do when the block ends."""
    far_ends: list[int] = []
    channels: list[_Channel] = []
    for _ in range(number):
        requests_end, requests = os.pipe()
        answers, answers_end = os.pipe()
        far_ends += requests_end, answers_end
        channels.append(_Channel(os.fdopen(requests, "wb"), os.fdopen(answers, "rb")))
    try:
        program = subprocess.Popen(
            [sys.executable, "-m", "assets.manifests.reading_process", *map(str, far_ends)],
            stdin=subprocess.PIPE,
            stdout=2,  # whatever prints must not get between what the starting process prints
            pass_fds=far_ends,
            process_group=0,
            env={
                **os.environ,
                **_MEMORY_SETTINGS,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )
        for descriptor in far_ends:
            os.close(descriptor)
        readers = ReadingProcesses(program, channels)
        try:
            yield readers
        except BaseException:
            readers.stop()
            raise
        finally:
            readers.close()
        readers.dismiss()
    finally:
        for channel in channels:
            channel.close()


def _feed(
    channel: _Channel,
    waiting: "SimpleQueue[Request | None]",
    found: "SimpleQueue[list[FileOutcome] | BaseException]",
) -> None:
    while (request := waiting.get()) is not None:
        found.put(_ask(channel, request))


def _ask(channel: _Channel, request: Request) -> list[FileOutcome]:
    try:
        pickle.dump(request, channel.requests)
        channel.requests.flush()
        answer: list[FileOutcome] | DatasetError = pickle.load(channel.answers)
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        raise DatasetError(
            "a process that reads traces died, perhaps for want of memory; ingest again"
        ) from error
    if isinstance(answer, DatasetError):
        raise answer
    return answer


def serve(state: BinaryIO, channels: Sequence[tuple[int, int]]) -> None:
    """Read the catalog, then serve each pair of descriptors by a child; end when all have ended.

    A channel brings chunks until it ends, and takes outcomes.
    """
    try:
        reading = pickle.load(state)
    except EOFError:
        return
    # Rows have no reference cycles, and a search for some goes through all rows so far, again and
    # again: a fifth of the time of reading. Errors may have some; they are found between chunks.
    gc.disable()
    gc.freeze()
    for channel in channels:
        if os.fork() == 0:
            _serve_alone(ChunkReader(reading), channel, channels)
            return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for descriptor in chain.from_iterable(channels):
        os.close(descriptor)
    for _ in channels:
        os.wait()


def _serve_alone(
    reader: ChunkReader, own: tuple[int, int], channels: Sequence[tuple[int, int]]
) -> None:
    # An end that another process holds open would never be seen to close.
    for descriptor in chain.from_iterable(channels):
        if descriptor not in own:
            os.close(descriptor)
    requests, answers = os.fdopen(own[0], "rb"), os.fdopen(own[1], "wb")
    with requests, answers, suppress(EOFError):
        while True:
            pickle.dump(_answer(reader, pickle.load(requests)), answers)
            answers.flush()
            gc.collect()


def _answer(reader: ChunkReader, request: Request) -> list[FileOutcome] | DatasetError:
    try:
        if isinstance(request, Writing):
            request.do()
            return []
        return reader.read(request)
    except DatasetError as error:
        return DatasetError(error.message)
    except OSError as error:
        return DatasetError(f"{error}; make room or say where to write, and ingest again")
