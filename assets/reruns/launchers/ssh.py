"""The launcher for a machine behind the OpenSSH client: copy there, start, ask, copy back.

Every exchange is one `ssh` call that may fail and be repeated: the copy appears there by one
rename, the start happens once, the result appears here by one rename. Nothing but sshd and
Python is needed on that machine; nothing is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assets.reruns.launchers import job_directory
from assets.reruns.launchers.job import (
    JobHandle,
    JobState,
    JobStatus,
    RerunJob,
    SshHandle,
    StopReason,
)
from assets.reruns.launchers.job_directory import JobDirectory
from assets.reruns.launchers.launcher import (
    LauncherError,
    LauncherUnreachableError,
    NoResultError,
    read_evidence,
)
from assets.reruns.launchers.local import check_worker_file, note_collected
from assets.reruns.launchers.settings import LauncherNotConfiguredError, SshSettings
from assets.reruns.launchers.supervisor import run_directory, transfer

_CONNECTION_FAILED = 255  # ssh(1), EXIT STATUS


class SshLauncher:
    """Runs workers on one other machine."""

    def __init__(self, settings: SshSettings, jobs_root: Path) -> None:
        self.settings = settings
        self.jobs_root = jobs_root

    def check(self) -> None:
        """See `Launcher.check`."""
        check_worker_file(self.settings.worker_file)
        if shutil.which("ssh") is None:
            raise LauncherNotConfiguredError("ssh: there is no OpenSSH client on this machine")
        test = "import sys; sys.exit(sys.version_info < (3, 10))"
        try:
            alone = self.settings.model_copy(update={"share_connection": False})
            SshLauncher(alone, self.jobs_root)._ssh([self.settings.python, "-c", test])
        except LauncherUnreachableError as error:
            raise LauncherNotConfiguredError(f"ssh.host: {error}") from error
        except LauncherError as error:
            raise LauncherNotConfiguredError(
                f"ssh.python: {self.settings.python} is no Python >= 3.10 there: {error}"
            ) from error

    def close(self) -> None:
        """End the shared connection now instead of a minute after its last use."""
        if self.settings.share_connection:
            command = [*self._ssh_arguments()[:-2], "-O", "exit", "--", self.settings.host]
            subprocess.run(command, capture_output=True, check=False)

    def submit(self, job: RerunJob) -> JobHandle:
        """See `Launcher.submit`."""
        with tempfile.TemporaryDirectory() as scratch:
            program = Path(scratch) / job_directory.SUPERVISOR
            job_directory.build_supervisor(program)
            version = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
        root = self.settings.remote_root
        handle = SshHandle(
            job_id=job.job_id,
            run_directory=f"{root}/{job.job_id}",
            supervisor=f"{root}/.supervisor-{version}.pyz",
        )
        directory = job_directory.prepare(self.jobs_root, job, self.settings, handle)
        recorded = directory.read().handle
        with directory.exclusive():
            record = directory.read()
            if record.submitted_at is None and not record.status.state.is_final:
                self._send_supervisor(directory, _mine(recorded))
                self._send_run(directory, _mine(recorded))
                self._start(_mine(recorded))
                directory.update("submitted", submitted_at=datetime.now(UTC))
        return recorded

    def _send_supervisor(self, directory: JobDirectory, handle: SshHandle) -> None:
        target, root = shlex.quote(handle.supervisor), shlex.quote(self.settings.remote_root)
        script = f"umask 077 && mkdir -p {root} && cat > {target}.$$ && mv -f {target}.$$ {target}"
        program = directory.path / job_directory.SUPERVISOR
        self._ssh(["sh", "-c", script], stdin=program)

    def _send_run(self, directory: JobDirectory, handle: SshHandle) -> None:
        """Copy what the run needs, unless it is there already."""
        with tempfile.TemporaryDirectory(dir=directory.path, prefix=".sending-") as scratch:
            archive = Path(scratch) / "run.tar"
            names = [run_directory.BUNDLE, run_directory.COMMAND, self.settings.worker_file.name]
            with archive.open("wb") as stream:
                transfer.pack(directory.path, stream, names)
            limit = str(archive.stat().st_size)
            self._supervisor(handle, "receive", "--limit-bytes", limit, stdin=archive)

    def _start(self, handle: SshHandle) -> None:
        said = self._answer(self._supervisor(handle, "start"))["said"]
        if said == "failed":
            raise LauncherError(
                f"job {handle.job_id}: the supervisor did not start on {self.settings.host}: "
                f"see {handle.run_directory}/supervisor.log there"
            )

    def poll(self, handle: JobHandle) -> JobStatus:
        """See `Launcher.poll`.

        A result that is here already is the answer; the other machine is not asked any more.
        """
        directory = self._directory(handle)
        record = directory.read()
        if run_directory.result_state(directory.path, record.bundle_id, record.nonce) == "complete":
            return JobStatus(state=JobState.FINISHED, detail="the result bundle is here")
        evidence = self._evidence(handle)
        if evidence.phase != "absent" or record.submitted_at is not None:
            return read_evidence(evidence)
        asked = run_directory.cancel_reason(directory.path)
        state = JobState.QUEUED if asked is None else JobState.CANCELLED
        return JobStatus(state=state, detail="not sent yet")

    def attach(self, handle: JobHandle) -> bool:
        """See `Launcher.attach`."""
        return self._evidence(handle).phase in ("running", "ended")

    def cancel(self, handle: JobHandle, reason: StopReason = "cancelled") -> None:
        """See `Launcher.cancel`."""
        directory = self._directory(handle)
        if directory.read().submitted_at is None:
            asked = {"reason": reason, "requested_at_s": time.time()}
            run_directory.write_json(directory.path / run_directory.CANCEL, asked)
        if directory.read().submitted_at is not None or self._evidence(handle).phase != "absent":
            self._supervisor(_mine(handle), "cancel", "--reason", reason)

    def _evidence(self, handle: JobHandle) -> run_directory.Evidence:
        """Ask the supervisor there; `absent` also before the supervisor itself was sent."""
        mine = _mine(handle)
        ask = shlex.join([self.settings.python, mine.supervisor, "status", mine.run_directory])
        script = f"if test -e {shlex.quote(mine.supervisor)}; then exec {ask}; else echo {{}}; fi"
        answer = self._answer(self._ssh(["sh", "-c", script]))
        return run_directory.Evidence(**answer) if answer else run_directory.ABSENT

    def collect(self, handle: JobHandle) -> Path:
        """See `Launcher.collect`."""
        mine = _mine(handle)
        directory = self._directory(handle)
        with directory.exclusive():
            if directory.result.exists():
                status = self.poll(handle)
            else:
                status = self._fetch_all(mine, directory)
            if status.state is not JobState.FINISHED:
                raise NoResultError(f"job {handle.job_id} is {status.state}: {status.detail}")
            if directory.read().collected_at is None and not self.settings.keep_remote:
                self._remove(mine, directory)
            note_collected(directory, status)
        return directory.result

    def _fetch_all(self, handle: SshHandle, directory: JobDirectory) -> JobStatus:
        """Copy log and result of a finished run here; return what its directory there shows."""
        evidence = self._evidence(handle)
        status = read_evidence(evidence)
        if status.state is JobState.FINISHED:
            if evidence.unsupervised_pids:  # left by a supervisor that was killed
                self._supervisor(handle, "cancel")
            self._keep_log(handle, directory)
            self._fetch(handle, directory)
        return status

    def _fetch(self, handle: SshHandle, directory: JobDirectory) -> None:
        """Copy the result bundle here; it appears whole or not at all."""
        with tempfile.TemporaryFile(dir=directory.path) as stream:
            self._supervisor(handle, "pack", stdout=stream)
            stream.seek(0)
            try:
                transfer.unpack(stream, directory.result, self.settings.result_limit_bytes)
            except transfer.TransferError as error:
                raise LauncherError(f"job {handle.job_id}: the result bundle: {error}") from error

    def _remove(self, handle: SshHandle, directory: JobDirectory) -> None:
        """Remove the run directory there; the result is here and durable by now."""
        try:
            self._supervisor(handle, "remove")
        except LauncherError as error:
            directory.update("left_behind", f"{handle.run_directory} is still there: {error}")

    def _keep_log(self, handle: SshHandle, directory: JobDirectory) -> None:
        log = b""
        while chunk := self.logs(handle, len(log)):
            log += chunk
            if len(chunk) < run_directory.LOG_CHUNK_BYTES:
                break
        (directory.path / run_directory.LOG).write_bytes(log)

    def logs(self, handle: JobHandle, from_offset: int) -> bytes:
        """See `Launcher.logs`."""
        directory = self._directory(handle)
        if directory.read().collected_at is not None:
            return run_directory.read_log(directory.path, from_offset)
        return self._supervisor(_mine(handle), "log", "--offset", str(from_offset))

    def _directory(self, handle: JobHandle) -> JobDirectory:
        return JobDirectory(self.jobs_root / handle.job_id)

    def _supervisor(
        self,
        handle: SshHandle,
        command: str,
        *arguments: str,
        stdin: Path | None = None,
        stdout: Any = subprocess.PIPE,
    ) -> bytes:
        program = [self.settings.python, handle.supervisor, command, handle.run_directory]
        return self._ssh([*program, *arguments], stdin=stdin, stdout=stdout)

    def _ssh(
        self,
        command: list[str],
        *,
        stdin: Path | None = None,
        stdout: Any = subprocess.PIPE,
    ) -> bytes:
        """Run one command there and return its stdout.

        Raises LauncherUnreachableError when the connection failed or broke, LauncherError when
        the command failed.
        """
        arguments = [*self._ssh_arguments(), shlex.join(command)]
        with (stdin or Path("/dev/null")).open("rb") as source:
            try:
                done = subprocess.run(
                    arguments,
                    stdin=source,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    timeout=self.settings.command_timeout_s,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise LauncherUnreachableError(
                    f"{self.settings.host}: no answer within {error.timeout:g} s"
                ) from error
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode == _CONNECTION_FAILED or done.returncode < 0:
            raise LauncherUnreachableError(f"{self.settings.host}: {said or 'connection lost'}")
        if done.returncode != 0:
            raise LauncherError(f"{self.settings.host}: {shlex.join(command[:3])}: {said}")
        return done.stdout or b""

    def _answer(self, output: bytes) -> dict[str, Any]:
        """Read the supervisor's answer, past anything a login script prints before it."""
        try:
            answer = json.loads(output.decode().strip().splitlines()[-1])
        except (IndexError, ValueError) as error:
            raise LauncherError(
                f"{self.settings.host}: not the supervisor's answer: {output[-200:]!r}"
            ) from error
        if not isinstance(answer, dict):
            raise LauncherError(f"{self.settings.host}: not the supervisor's answer: {answer!r}")
        return answer

    def _ssh_arguments(self) -> list[str]:
        settings = self.settings
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": str(settings.connect_timeout_s),
            "ServerAliveInterval": "15",
            "ServerAliveCountMax": "3",
        }
        if settings.identity_file is not None:
            options |= {"IdentityFile": str(settings.identity_file), "IdentitiesOnly": "yes"}
        if settings.known_hosts_file is not None:
            options["UserKnownHostsFile"] = str(settings.known_hosts_file)
        if settings.share_connection:
            options |= {"ControlMaster": "auto", "ControlPersist": "60"}
            options["ControlPath"] = f"{_control_directory()}/%C"
        arguments = ["ssh", "-T", "-x"]
        if settings.config_file is not None:
            arguments += ["-F", str(settings.config_file)]
        for name, value in options.items():
            arguments += ["-o", f"{name}={value}"]
        arguments += ["-p", str(settings.port)] if settings.port is not None else []
        arguments += ["-l", settings.user] if settings.user is not None else []
        return [*arguments, "--", settings.host]


def _control_directory() -> Path:
    """Return a short private path: a socket's path has at most about 100 bytes (unix(7))."""
    path = Path(tempfile.gettempdir()) / f"kernelindex-ssh-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise LauncherError(f"{path} belongs to someone else; set ssh.share_connection to false")
    return path


def _mine(handle: JobHandle) -> SshHandle:
    if not isinstance(handle, SshHandle):
        raise TypeError(f"job {handle.job_id} belongs to the launcher {handle.kind!r}, not to ssh")
    return handle
