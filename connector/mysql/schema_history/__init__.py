"""Column names of tables whose TABLE_MAP does not have them.

- `table_history`: the source's tables, followed through its log; `mysql/binlog/events/column_names` has the seam.
"""
