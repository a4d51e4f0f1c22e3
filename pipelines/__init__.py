"""When and where work runs: the Dagster code location and the command line.

Nothing is computed here; every step is a call into `assets`.
"""
