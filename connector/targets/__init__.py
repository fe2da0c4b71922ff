"""Target databases: the contract, what all targets share, and a folder for each kind.

- `target`: the contract of every target.
- `open`: opens the target that `target.url` names.
- `operations`: the effect of DDL on a target's tables, without any target's SQL.
- `ddl/`: DDL statements of the source as operations.
- `table`, `target_schema`: the tables that the connector created, as MySQL defines them.
- `types`, `narrowing`: MySQL's types, and the values that stay equal when a type changes.
- `names`: names of tables and columns on a target, and collisions between them.
- `default_values`, `absent_columns`: inserts whose absent columns get their defaults.
- `unique_key_index`: indexes for tables whose rows are found by a unique key.
- `add_metadata_columns`: metadata columns for tables that were created without them.
- `bookkeeping`: the columns of the `thl_*` tables.
- `signal_table`: requests to an applier, and the marks on tables.
- `values`: row images as Python values.
- `postgres/`, `sqlite/`: the kinds of targets.
"""
