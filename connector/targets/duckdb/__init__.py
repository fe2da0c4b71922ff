"""DuckDB as a target: one file, which this process alone has open while it writes.

- `entrance`: opens, checks and reads the target, for `targets.open`.
- `target`: the target itself.
- `file`: the file: opened when it is needed, lent to others between commits.
- `rows`: applies row changes, and names the rows that a change does not find.
- `partial_rows`: rows of which the log has only some columns.
- `keyless_rows`: deletes of a table without a key.
- `staged_rows`: rows of the log as Arrow tables, which statements read.
- `catalog_checks`: tables that cannot be replaced by upserts, or deleted from.
- `marks`: the keys that were written since a table's load began.
- `ddl`: applies DDL operations.
- `dictionary`: tables and columns as the file has them.
- `names`: names of tables and columns.
- `types`: DuckDB's types for MySQL's.
- `literals`: values as SQL.
- `bookkeeping`: the applier's tables.
- `signal_table`: the session for the signal tables.
- `progress`: reads the position and heartbeats from outside.
- `errors`: DuckDB's errors as the connector's.
"""
