"""Places at which a test may kill the process, to see what the next one finds.

`KERNELINDEX_KILL_AT` names the place; nothing is unwound there, as with `kill -9`. Without the
variable, as it is everywhere but in tests, passing a place does nothing.
"""

import os
import signal

VARIABLE = "KERNELINDEX_KILL_AT"


def passing(place: str) -> None:
    """Say that a place is reached."""
    if os.environ.get(VARIABLE) == place:
        os.kill(os.getpid(), signal.SIGKILL)
