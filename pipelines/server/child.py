"""Run one of the server's programs, which ends when the process that started it is gone.

`python -m pipelines.server.child DESCRIPTOR MODULE ARGUMENTS…` runs MODULE as `python -m` does. The
descriptor is the reading end of a pipe whose other end only the starter holds: however that dies,
the pipe closes, and this process ends with all of its process group. Signals to a dead parent's
children are Linux's own; a pipe closes everywhere.
"""

import os
import runpy
import signal
import sys
import threading
import time

PATIENCE_S = 30.0


def main() -> None:
    """Watch the starter, and be the program."""
    descriptor, module, *arguments = sys.argv[1:]
    threading.Thread(target=_end_with_starter, args=[int(descriptor)], daemon=True).start()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with_starter(descriptor: int) -> None:
    while os.read(descriptor, 64):
        pass
    # As Ctrl-C does it: a run in progress is told, and says in its history that it was stopped.
    os.killpg(os.getpgrp(), signal.SIGINT)
    time.sleep(PATIENCE_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
