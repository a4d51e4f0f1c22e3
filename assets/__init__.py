"""What the pipeline builds, one room per stage.

`traces` pulls, `manifests` normalizes, `tables` publishes, `leaderboards` derives, `reruns`
re-measures. Imports go one way only: `reruns -> leaderboards -> tables -> manifests -> traces`.
Only `asset.py` and `checks.py` in each room import dagster.
"""
