"""The grammar of MySQL's and MariaDB's DDL: text in, syntax tree out.

- `ast`: the tree: statements.
- `clauses`: the tree: clauses of ALTER TABLE.
- `ast_table`: the tree: keys, constraints, options.
- `ast_column`: the tree: columns, their types, attributes and defaults; names and spans.
- `tokens`: cuts text into tokens.
- `reader`: a cursor over tokens.
- `parse`: parses statements.
- `parse_alter`: parses the clauses of ALTER TABLE.
- `parse_table`: parses CREATE TABLE, keys and constraints.
- `parse_options`: parses options of tables.
- `parse_column`: parses columns.
- `parse_type`: parses types.
- `parse_default`: parses defaults.
- `parse_parts`: parses expressions, parts of indexes, the other end of a foreign key.
- `type_names`: names of types and character sets.
"""
