"""MySQL's DDL: `syntax` parses a statement once, into a syntax tree; everything here walks that tree.

Pure: imports `log.transaction`, errors and the standard library alone.

Meaning      `column_spec`, `table_spec` (a definition in its session), `alteration` (all clauses of an ALTER TABLE as
             one change), `mariadb` (the server that executed it), `expression_words`
Visitors     `schema_changes` (the source's tables afterwards, in a `schema_draft`), `affected_tables`, `captured` (the
             part about captured tables), `drop_columns`, `rename_columns` (by `column_mentions`), `rename_tables`,
             `foreign_keys` (those that cascade); the plans of a target are in `targets.ddl`

A new clause of ALTER TABLE is a class in `syntax.clauses` that `syntax.parse_alter` makes; mypy then names every
visitor that does not say what the clause means to it.
"""
