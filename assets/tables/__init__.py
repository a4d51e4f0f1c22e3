"""Publish: table contracts, atomic publication to Parquet, the DuckDB database file."""
