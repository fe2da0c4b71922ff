"""A source's transactions as types.

- `batch`: a transaction in batches of bounded size; compiled.
- `definition`: the source's tables at a position of its log.
- `event_id`: the id of an event: file, end offset and connection.
- `finished`: a finished event, with the digest of its contents; compiled.
- `layout`: tables and columns.
- `load`: the events of a table's load.
- `pending`: XA transactions between XA PREPARE and XA COMMIT.
- `position`: the positions of the producer and of a target; the start of a stream, the end of an initial load.
- `rows_query`: the statements that made an event's rows.
- `source_position`: a file and offset of the binary log; compiled.
- `statement_options`: the session options that a statement needs.
- `xa`: XA transactions as the source logs them.
"""
