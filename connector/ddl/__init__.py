"""MySQL's DDL: `syntax` parses a statement once into a syntax tree; the modules here walk that tree.

Pure: imports only `log`, errors and the standard library.

- `syntax/`: text to syntax tree.
- `column_spec`: a column's definition in its session.
- `table_spec`: a table's definition in its session and schema.
- `indexes`: a table's secondary indexes as definitions leave them.
- `alteration`: all clauses of an ALTER TABLE as one change.
- `mariadb`: the dialect of the server that executed a statement; MariaDB's unlogged columns.
- `expression_words`: distinguishes columns from other words in an expression.
- `schema_changes`: the source's tables after a statement.
- `schema_draft`: the tables while a statement is followed.
- `affected_tables`: the tables that a statement names or changes.
- `captured`: the part of a statement about captured tables.
- `drop_columns`: a definition without some columns.
- `plain_indexes`: a definition with ordinary indexes in place of unique ones whose published values may repeat.
- `nullable_columns`: a definition in which columns may be NULL that a rule publishes NULL for.
- `rename_columns`: a definition with columns renamed.
- `column_mentions`: the places at which a definition names columns.
- `rename_tables`: a statement with tables renamed.
- `foreign_keys`: foreign keys that cascade.

A new clause of ALTER TABLE is a class in `syntax.clauses`, created by `syntax.parse_alter`; mypy then names every
visitor that does not handle it. The plans of a target are in `targets.ddl`.
"""
