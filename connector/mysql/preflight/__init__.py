"""Checks of the source before anything is read.

- `preflight`: settings and grants.
- `cascades`: foreign keys whose changes are not logged.
- `replication`: changes from other servers that are not logged; how far the source lags behind them.
- `semi_sync`: a source that waits for acknowledgements.
- `unmatched_patterns`: patterns of filters that match no table.
- `wider_filters`: filters that capture more than before.
- `zero_dates`: dates that some targets lack.
"""
