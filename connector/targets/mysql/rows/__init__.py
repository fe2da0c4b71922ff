"""The row changes of a table as statements of MySQL.

- `row_writer`: applies the net changes of a table.
- `table_statements`: runs statements about one table; its errors name rows.
- `keyed_rows`: whole rows of tables with a key.
- `load_data`: many new rows by LOAD DATA LOCAL.
- `keyless_rows`: rows of tables without a key.
- `partial_updates`: rows of which the log has only some columns, changed in place.
- `partial_rows`: such rows in a temporary table, where unique values may swap.
- `computed_columns`: compares generated columns that depend on the session.
- `marks`: the keys that were written since a table's load began.
- `older_rows`: rows that a table had before its load began.
"""
