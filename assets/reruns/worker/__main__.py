"""`python -m assets.reruns.worker`: the same entry point as the single-file worker."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
