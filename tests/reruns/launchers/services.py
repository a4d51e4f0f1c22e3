"""A real sshd and a real Slurm on this machine, for the time of a test session.

Everything lies in one temporary folder and listens on loopback only: throwaway keys, a munge
key, generated configuration, logs. All daemons run in the foreground as children of the test
process, so that stopping them leaves nothing. Needs the Debian packages openssh-server,
slurm-wlm and munge; Slurm's daemons and munged run as root here.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from assets.reruns.launchers.supervisor import processes

GPU_DEVICES = ("/dev/null", "/dev/zero")
"""Two character devices that every Linux has; Slurm hands out their numbers as GPUs 0 and 1."""


def _end_with_the_tests() -> None:
    """In the daemon, before its program: end also when the test process is killed.

    The kernel watches the thread that starts a daemon, so only the main thread may.
    """
    processes.signal_when_parent_dies(signal.SIGTERM)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Daemons:
    """Foreground daemons by name."""

    logs: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: list[str], **environment: str) -> None:
        with (self.logs / f"{name}.out").open("ab") as output:
            self.running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
                preexec_fn=_end_with_the_tests,
            )

    def stop(self, name: str, signal_number: int = signal.SIGTERM) -> None:
        process = self.running.pop(name)
        process.send_signal(signal_number)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop_all(self) -> None:
        for name in reversed(list(self.running)):
            self.stop(name)


class SshServer:
    """sshd on a loopback port, with a host key and a login key of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        folder.chmod(0o700)
        self.port = free_port()
        self.user = getpass.getuser()
        self.identity_file = folder / "login"
        self.known_hosts_file = folder / "known_hosts"
        self._config = folder / "sshd_config"
        self._daemons = Daemons(folder)
        self._made: Path | None = None
        for key in ("host", "login"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)],
                check=True,
            )
        shutil.copy(folder / "login.pub", folder / "authorized_keys")
        host_key = (folder / "host.pub").read_text()
        self.known_hosts_file.write_text(f"[127.0.0.1]:{self.port} {host_key}")
        self._config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\n"
            f"PidFile {folder / 'sshd.pid'}\nAuthorizedKeysFile {folder / 'authorized_keys'}\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
            "MaxStartups 100\nMaxSessions 100\nPrintMotd no\nUseDNS no\n"
        )

    def start(self) -> None:
        separation = Path("/run/sshd")  # where Debian's sshd insists on an empty folder
        if os.getuid() == 0 and not separation.exists():
            separation.mkdir(mode=0o755)
            self._made = separation
        program = shutil.which("sshd") or "/usr/sbin/sshd"
        self._daemons.start("sshd", [program, "-D", "-e", "-f", str(self._config)])
        give_up_at = time.monotonic() + 10
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert time.monotonic() < give_up_at, "sshd does not listen"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop listening and cut every connection, as a network failure would."""
        process = self._daemons.running["sshd"]
        for pid in _children(process.pid):
            for below in [*_children(pid), pid]:
                if _is_sshd(below):
                    _kill(below)
        self._daemons.stop("sshd")

    def close(self) -> None:
        self._daemons.stop_all()
        if self._made is not None:
            self._made.rmdir()


class SlurmCluster:
    """munged, slurmctld and slurmd: one node with two GPUs that are none."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        folder.chmod(0o755)
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir(mode=0o700)
        self._folder = folder
        self._daemons = Daemons(folder)
        self.node = socket.gethostname().split(".")[0]
        self.config_file = folder / "slurm.conf"
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.config_file.write_text(self._config())
        (folder / "gres.conf").write_text(
            "".join(f"NodeName={self.node} Name=gpu File={device}\n" for device in GPU_DEVICES)
        )

    def _config(self) -> str:
        folder = self._folder
        settings = {
            "ClusterName": "reruns",
            "SlurmctldHost": f"{self.node}(127.0.0.1)",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "SlurmctldPort": free_port(),
            "SlurmdPort": free_port(),
            "AuthType": "auth/munge",
            # A requeued job waits until its old credential has expired: 120 s unless told.
            "AuthInfo": f"socket={folder}/munge/socket,cred_expire=5",
            "StateSaveLocation": folder / "state",
            "SlurmdSpoolDir": folder / "spool",
            "SlurmctldPidFile": folder / "slurmctld.pid",
            "SlurmdPidFile": folder / "slurmd.pid",
            "SlurmctldLogFile": folder / "slurmctld.log",
            "SlurmdLogFile": folder / "slurmd.log",
            "ProctrackType": "proctrack/pgid",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStorageType": "accounting_storage/none",
            "MpiDefault": "none",
            "SwitchType": "switch/none",
            "MailProg": "/bin/true",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            "GresTypes": "gpu",
            "SchedulerType": "sched/backfill",
            "SchedulerParameters": "defer,sched_interval=1,batch_sched_delay=0,bf_interval=1",
            "SlurmdParameters": "config_overrides",
            "PropagateResourceLimits": "NONE",
            "ReturnToService": 2,
            "KillWait": 2,
            "MinJobAge": 300,
            "MessageTimeout": 4,
            "SlurmdTimeout": 4,
            "SlurmctldTimeout": 10,
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        lines.append(f"NodeName={self.node} NodeAddr=127.0.0.1 CPUs=8 RealMemory=500 Gres=gpu:2")
        lines.append(f"PartitionName=gpu Nodes={self.node} Default=YES MaxTime=60 State=UP")
        return "\n".join(lines) + "\n"

    def start(self) -> None:
        munge = self._folder / "munge"
        self._daemons.start(
            "munged",
            [
                "munged",
                "--foreground",
                "--force",
                f"--socket={munge}/socket",
                f"--key-file={munge}/key",
                f"--seed-file={munge}/seed",
                f"--pid-file={munge}/pid",
                f"--log-file={munge}/log",
            ],
        )
        _until((munge / "socket").exists, "munged made no socket")
        self.start_controller()
        self.start_node()
        _until(lambda: self.node_state() in ("idle", "mixed"), "the node did not come up")

    def start_controller(self) -> None:
        self._daemons.start(
            "slurmctld", ["slurmctld", "-D", "-f", str(self.config_file)], SLURM_CONF=self.conf
        )

    def start_node(self) -> None:
        self._daemons.start(
            "slurmd",
            ["slurmd", "-D", "-N", self.node, "-f", str(self.config_file)],
            SLURM_CONF=self.conf,
        )

    def kill_node(self) -> None:
        """Kill slurmd; the steps of running jobs live on, as after a network failure."""
        self._daemons.stop("slurmd", signal.SIGKILL)

    def crash_node(self, slurm_job_id: str) -> None:
        """Kill slurmd and everything of one job at once, as a power cut would."""
        self._daemons.stop("slurmd", signal.SIGKILL)
        doomed = self.step_daemons(slurm_job_id)
        doomed += [below for pid in doomed for below in _below(pid)]
        for pid in doomed:
            _kill(pid)
        give_up_at = time.monotonic() + 5
        while any(Path(f"/proc/{pid}").exists() for pid in doomed):
            assert time.monotonic() < give_up_at, f"{doomed} do not die"
            time.sleep(0.02)

    def give_up_node(self) -> None:
        """Say what the controller would find out by itself some 15 s later."""
        self.command("scontrol", "update", f"nodename={self.node}", "state=down", "reason=crashed")

    def heal(self) -> None:
        """Bring the node back, empty."""
        self.command("scancel", "--user=root")
        if "slurmd" not in self._daemons.running:
            self.start_node()
        self.command("scontrol", "update", f"nodename={self.node}", "state=resume")
        _until(lambda: not self.command("squeue", "--noheader"), "jobs are left", 30)
        _until(lambda: self.node_state() == "idle", "the node did not come back", 30)

    def stop_controller(self) -> None:
        self._daemons.stop("slurmctld")

    @property
    def conf(self) -> str:
        return str(self.config_file)

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            env={**os.environ, "SLURM_CONF": self.conf},
            check=False,
        )
        return done.stdout.strip()

    def node_state(self) -> str:
        return self.command("sinfo", "--noheader", "--format=%T")

    def step_daemons(self, slurm_job_id: str) -> list[int]:
        """The slurmstepd processes of one job: their command line is `slurmstepd: [ID.batch]`."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    text = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if text.startswith(b"slurmstepd") and f"[{slurm_job_id}.".encode() in text:
                    found.append(int(entry.name))
        return found

    def close(self) -> None:
        if "slurmctld" in self._daemons.running:
            self.command("scancel", "--user=root")
            give_up_at = time.monotonic() + 8
            while self.command("squeue", "--noheader") and time.monotonic() < give_up_at:
                time.sleep(0.1)
        self._daemons.stop_all()


def _until(condition: object, message: str, timeout_s: float = 20.0) -> None:
    assert callable(condition)
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up_at, message
        time.sleep(0.1)


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def _below(pid: int) -> list[int]:
    children = _children(pid)
    return children + [below for child in children for below in _below(child)]


def _is_sshd(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip().startswith("sshd")
    except OSError:
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
