"""Answer questions from the built database: look up, rank, compare, resolve, describe, export.

Reads tables and publications, makes none; knows nothing of terminals. `pipelines.commands` prints
what comes out of here.
"""
