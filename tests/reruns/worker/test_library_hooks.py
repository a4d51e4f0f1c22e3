"""What installed libraries catch on their own is told from what a solution sets."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import ctypes, glob, json, signal, sys, types
import torch
from assets.reruns.worker import hooks

library = ctypes.CDLL(sorted(glob.glob(torch.__path__[0] + "/lib/libtorch_cpu*"))[0])
libc = ctypes.CDLL(None)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
found = {}
signal.signal(signal.SIGUSR1, lambda *a: None)
found["python"] = hooks.foreign_handler(signal.SIGUSR1)
own = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
libc.signal(signal.SIGUSR2, ctypes.cast(own, ctypes.c_void_p))
found["native code of the solution's"] = hooks.foreign_handler(signal.SIGUSR2)
libc.signal(signal.SIGHUP, ctypes.cast(library.cpuinfo_initialize, ctypes.c_void_p))
found["an installed library"] = hooks.foreign_handler(signal.SIGHUP)

def adds(name, path):
    module = types.ModuleType(name)
    exec(compile("import sys; sys.addaudithook(lambda *a: None)", path, "exec"), vars(module))
    return bool(hooks._audited)

hooks.listen()
found["hook of the solution's"] = adds("mine", "main.py")
hooks.listen()
found["hook under a library's file name"] = adds("torch", torch.__file__)
print(json.dumps(found))
"""


def test_handlers_and_audit_hooks_are_known_by_whose_code_they_are(torch_python: str) -> None:
    done = subprocess.run(
        [torch_python, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "python": True,
        "native code of the solution's": True,
        "an installed library": False,
        "hook of the solution's": True,
        "hook under a library's file name": True,
    }
