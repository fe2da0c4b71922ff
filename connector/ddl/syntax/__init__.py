"""The grammar of MySQL's and MariaDB's DDL: text in, syntax tree out.

The tree     `ast` (statements), `clauses` (of ALTER TABLE), `ast_table` (keys, constraints, options), `ast_column`
             (columns, their types, attributes and defaults; names and spans)
Parsing      `tokens` → `reader` (a cursor over them) → `parse` (statements), `parse_alter`, `parse_table`,
             `parse_options`, `parse_column`, `parse_type`, `parse_default`, `parse_parts` (of several of these);
             `type_names` (of types and character sets)
"""
