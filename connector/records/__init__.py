"""The record store: whole rows of the tables that a log is about, as they were after each of its events.

It completes partial row images (`connector.producer.records`), and depends on no server.

- `database`: the embedded database: its settings, its errors.
- `versions`: the rows' versions, by key and by event.
- `stored`: the bytes of what is stored; compiled.
"""
