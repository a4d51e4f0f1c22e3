"""A launcher in a process of its own, so that it can be killed.

`python -m tests.reruns.launchers.launcher_process run JOBS_ROOT SETTINGS JOB` drives one job,
`… reconcile JOBS_ROOT` repairs; SETTINGS and JOB are JSON.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import TypeAdapter

from assets.reruns.launchers.drive import run_job
from assets.reruns.launchers.job import RerunJob
from assets.reruns.launchers.launcher import launcher_for
from assets.reruns.launchers.reconcile import reconcile
from assets.reruns.launchers.settings import LauncherSettings


def main() -> None:
    mode, jobs_root, *rest = sys.argv[1:]
    if mode == "reconcile":
        for finding in reconcile(Path(jobs_root)):
            print(finding)
        return
    settings: LauncherSettings = TypeAdapter(LauncherSettings).validate_json(rest[0])
    launcher = launcher_for(settings, Path(jobs_root))
    outcome = run_job(
        launcher,
        RerunJob.model_validate_json(rest[1]),
        lambda event: print(event.line, flush=True),
        lambda: False,
    )
    print(outcome)


if __name__ == "__main__":
    main()
