"""The rerun worker: runs one job bundle on one GPU and writes one result bundle.

Self-contained: Python 3.10 or newer, torch and the standard library, so that it can be copied as
one file (`build.py`) to a machine that holds nothing else of this project. Nothing in here may
import from outside this folder. The supervisor (`run.py`) never imports torch; candidates, the
reference and the calibration run in processes of their own (`nursery.py`, `child.py`).
"""

WORKER_VERSION = "1.1.1"
