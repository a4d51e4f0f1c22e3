"""Derive: the files under `sql/` become tables, Dagster assets and checks."""
