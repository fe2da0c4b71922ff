"""The initial load: the tables at one position of the log.

- `information_schema`: tables as the data dictionary describes them.
- `snapshot`: the load as events.
- `table_rows`: the rows of one table.
"""
