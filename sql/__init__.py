"""One SELECT per file; read through `assets.leaderboards`."""
