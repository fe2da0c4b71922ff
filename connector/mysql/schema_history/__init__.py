"""Column names of tables whose TABLE_MAP does not have them.

- `column_names`: the seam, and resolvers that need no history
- `table_history`: the source's tables, followed through its log
"""
