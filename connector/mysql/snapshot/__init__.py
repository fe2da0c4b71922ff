"""The tables of the source, as loads read them.

- `information_schema`: tables as the data dictionary describes them.
- `snapshot`: the tables' definitions at one position, with which an initial load begins.
- `loadable`: which tables can be loaded, and the reasons why not.
- `opened_table`: a table whose definition is locked.
- `division`: the chunks of a table.
- `key_ranges`: ranges of a primary key in SQL.
- `handover`: the queue from the threads that read to the one that makes events.
- `load_round`: chunks of tables in one short view.
- `load_conditions`: conditions on the source that delay a round.
- `estimate`: rows, chunks and time of a load, for `--dry-run`.
- `table_rows`: the rows of a chunk.
- `rows_by_key`: the rows of some keys, for a repair.
"""
