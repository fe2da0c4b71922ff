"""SQLite as a target.

- `entrance`: opens, checks and reads the target, for `targets.open`.
- `target`: the target itself.
- `rows`: applies row changes, and names the rows that a change does not find.
- `catalog_checks`: tables that cannot be replaced by upserts, or deleted from.
- `marks`: the keys that were written since a table's load began.
- `ddl`: applies DDL operations.
- `names`: names of tables and columns.
- `types`: SQLite's types for MySQL's.
- `bookkeeping`: the applier's tables.
- `signal_table`: the session for the signal tables.
- `progress`: reads the position and heartbeats from outside.
- `errors`: SQLite's errors as the connector's.
"""
