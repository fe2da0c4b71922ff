"""The initial load: the tables at one position of the log.

- `information_schema`: tables as the data dictionary describes them.
- `snapshot`: the load as events.
- `readers`: the sessions that read tables at the same time, each in a thread.
- `division`: the chunks of a table.
- `key_ranges`: ranges of a primary key in SQL.
- `handover`: the queue from the readers' threads to the one that makes events.
- `load_round`: chunks of tables in one short view, for the load of tables while the stream goes on.
- `estimate`: what a load would read, for `thl produce --dry-run`.
- `table_rows`: the rows of a chunk.
"""
