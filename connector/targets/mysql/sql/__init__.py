"""Names, types and values as MySQL writes them.

- `names`: names of databases, tables and columns.
- `types`: types and collations.
- `literals`: single values as literals.
- `sql_values`: row images as literals, and as lines of a file; compiled.
- `json_exact`: JSON documents whose numbers stay as they are.
"""
