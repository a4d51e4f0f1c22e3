"""Tests of assets/leaderboards and of the files under sql/."""
