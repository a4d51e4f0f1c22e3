"""Build the single-file worker `kernelindex_worker.pyz`, the same bytes from the same sources."""

import sys
import zipfile
from pathlib import Path

PACKAGE = "kernelindex_worker"
FILE_NAME = "kernelindex_worker.pyz"
_SHEBANG = b"#!/usr/bin/env python3\n"
_MAIN = f"""import sys

from {PACKAGE}.cli import main

if __name__ == "__main__":
    sys.exit(main())
"""
#: The earliest time that a zip file can hold: no clock, no file system leaks into the result.
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16


def build_worker(target: Path) -> Path:
    """Write the worker as one executable file to `target` and return it; raises `OSError`."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    temporary = target.with_name(target.name + ".tmp")
    with temporary.open("wb") as stream:
        stream.write(_SHEBANG)
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            _add(archive, "__main__.py", _MAIN.encode("utf-8"))
            for source in sources:
                if source.name not in ("__main__.py", "build.py"):
                    _add(archive, f"{PACKAGE}/{source.name}", source.read_bytes())
    temporary.chmod(0o755)
    temporary.replace(target)
    return target


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _TIMESTAMP)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _MODE
    entry.create_system = 3
    archive.writestr(entry, content)


if __name__ == "__main__":
    print(build_worker(Path(sys.argv[1] if len(sys.argv) > 1 else FILE_NAME)))
