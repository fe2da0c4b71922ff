"""Checks of the source before anything is read.

- `preflight`: settings and grants
- `cascades`: foreign keys whose changes are not logged
- `replication`: changes from other servers that are not logged
- `widening`: filters that capture more than before
"""
