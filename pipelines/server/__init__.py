"""What `kernelindex dev` runs: the guarded web server, Dagster's daemon and its code server.

Nothing here knows what is ingested; `pipelines/commands/server.py` is the command itself.
"""
