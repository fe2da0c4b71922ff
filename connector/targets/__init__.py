"""Target databases: the contract, what all targets share, and a folder for each kind.

- `target`: the contract of every target.
- `open`: opens the target that `target.url` names.
- `operations`: the effect of DDL on a target's tables, without any target's SQL.
- `ddl/`: DDL statements of the source, and the edges of loads, as operations.
- `table`: a table that the connector created, as MySQL defines it.
- `target_schema`: all these tables, and those that are excluded or being loaded.
- `staged_schema`: these tables as the last commit left them, and after the staged changes.
- `types`: MySQL's types.
- `logged_statements`: checks that a change that was logged as a statement can be executed.
- `histories`: the histories of tables: their creation, and their rows of statements.
- `widening`: changes of type that keep every value.
- `narrowing`: the values that stay equal when a type changes.
- `marks`: the keys of a table that were written since its load began.
- `names`: the interface to a target's rules for names, and the check for collisions.
- `default_values`: defaults of the columns that inserts lack.
- `absent_columns`: inserts with these defaults filled in; compiled.
- `unique_key_index`: indexes for tables whose rows are found by a unique key.
- `add_metadata_columns`: metadata columns for tables that were created without them.
- `bookkeeping`: the columns of the `thl_*` tables.
- `position`: the position of a service, for those that look from outside.
- `commit_statements`: the statements of a commit that write these tables.
- `signal_table`: requests to an applier, and the marks on tables.
- `values`: row images as Python values; compiled.
- `duckdb/`: DuckDB.
- `mysql/`: MySQL and MariaDB.
- `postgres/`: PostgreSQL.
- `sqlite/`: SQLite.
"""
