"""MySQL's DDL as a syntax tree, and what walks it. Pure: `log.transaction`, errors and the standard library alone.

The tree     `ast` (statements, clauses of ALTER TABLE), `ast_table` (columns, keys, options), `column_default`
Making it    `tokens` → `reader` → `parse`, `parse_table`, `parse_alter`, `parse_column`, `parse_default`
Its meaning  `column_spec`, `table_spec` (a definition in its session), `alteration` (all clauses as one change),
             `mariadb` (whose statement it is), `type_names`, `expression_words`
Visitors     `schema_changes` (the source's tables afterwards), `affected_tables`, `captured` (the part about captured
             tables), `drop_columns`, `rename_columns`, `rename_tables`, `foreign_keys` (that cascade); a target's
             plans are in `targets.ddl`

A new clause is a class of `ast.Clause` that `parse_alter` makes; mypy then names every visitor that does not say what
the clause means to it.
"""
