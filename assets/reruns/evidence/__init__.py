"""What a result bundle claims, computed again from its samples, its calibration and its job.

A rule looks at one session or at one item of it and yields a `Fault` for each claim that does not
follow. The rules of each protocol are listed in `protocols.py`, the only module that others call.
The arithmetic is the worker's own (`worker/statistics.py`, `roofline.py`, `calibration.py`,
`verdict.py`), so that there is one way to compute each value. Files are read in
`result_files.py`; nothing here reads or writes any.
"""
