"""Whose turn it is in a group's session: one subject runs, the others stand still.

Also how failures are told apart: a candidate's is its own, the reference's is the whole group's.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .codes import reason
from .processes import ChildFailed, ChildRefused, ChildTampered
from .subjects import Candidate, Group, Subject, Surroundings
from .verdict import reason_of_failure


class RefereeFailed(Exception):  # noqa: N818
    """The reference cannot be run for this group."""


class Turns:
    """The processes of one session: the referee, the reference and the candidates."""

    def __init__(self, around: Surroundings, group: Group) -> None:
        self.around = around
        self.group = group
        self.referee: Subject | None = None
        self.reference: Subject | None = None
        self._turn_of: Subject | None = None

    def subjects(self) -> list[Subject]:
        """Everybody who has a process."""
        found = [candidate.subject for candidate in self.group.candidates]
        found += [self.reference, self.referee]
        return [subject for subject in found if subject is not None]

    def start(self, name: str, log: Path | None = None, memory: int | None = None) -> Subject:
        """A fresh process with a folder of its own; raises `ChildFailed`."""
        folder = self.around.scratch / f"{name}-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        settings = {**self.around.settings, "folder": str(folder)}
        child = self.around.nursery.start(log or folder / "log.txt", settings, memory)
        return Subject(name, child, folder, self.around.limits.per_run_timeout_s)

    def ask_referee(self, command: str, **values: Any) -> dict[str, Any]:
        """Ask the referee, also in somebody else's turn.

        Raises `RefereeFailed`, or `ChildTampered` where it finds a candidate's answers forged.
        """
        if self.referee is None:
            raise RefereeFailed("it was never started")
        self.referee.spent_s = 0.0  # its time is bounded per request, not per item
        self.referee.child.resume()
        try:
            return self.referee.ask(command, **values).values
        except ChildRefused as error:
            if error.kind == "HARNESS_TAMPERING":
                raise ChildTampered(error.detail) from error
            raise RefereeFailed(str(error)[-1500:]) from error
        except ChildFailed as error:
            raise RefereeFailed(str(error)[-1500:]) from error
        finally:
            if self._turn_of not in (None, self.referee):
                self.referee.child.pause()

    def turn(self, candidate: Candidate | None, action: Callable[[Candidate | None], None]) -> None:
        """Let one subject run alone; None stands for the reference."""
        subject = self.reference if candidate is None else candidate.subject
        if subject is None:
            return
        self._turn_of = subject
        for other in self.subjects():
            if other is not subject:
                other.child.pause()
        self.around.nursery.sweep()
        try:
            if candidate is None:
                try:
                    action(None)
                except ChildFailed as error:
                    raise RefereeFailed(str(error)[-1500:]) from error
            else:
                self.guard(candidate, action)
        finally:
            self._turn_of = None
            for other in self.subjects():
                other.child.resume()

    def guard(self, candidate: Candidate, action: Callable[[Candidate], None]) -> None:
        """Turn a candidate's failure into its reason; the others go on."""
        try:
            action(candidate)
        except ChildFailed as error:
            candidate.write_log(error)
            candidate.fail(reason_of_failure(error))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Answers of the harness always have their parts; only a forged one does not.
            candidate.fail(reason("HARNESS_TAMPERING", f"An answer is malformed: {error!r}."))

    def subject_of(self, candidate: Candidate | None) -> Subject:
        """The subject of a candidate, or of the reference; raises `ValueError` without one."""
        subject = self.reference if candidate is None else candidate.subject
        if subject is None:
            raise ValueError("there is no process to ask")
        return subject
