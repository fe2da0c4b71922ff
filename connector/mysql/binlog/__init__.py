"""The binary log: bytes cut into events, decoded and gathered into transactions.

- `events/`: bodies of events, and the seams to filters and column names.
- `reader`: reads transactions from a stream or a file.
- `log_reader`: reads transactions from files, also damaged ones.
- `log_files`: names and bytes of files, compressed or not.
- `salvage`: reads on behind damage.
- `resync`: finds the next event behind damage; compiled.
- `byte_source`: the seam to what the bytes come from.
- `frames`: cuts bytes into events; compiled.
- `event`: the header of an event; compiled.
- `raw`: events as the bytes of files; compiled.
- `decoder`: the loop over events, GTIDs and rows; compiled.
- `control_events`: events about the log itself; compiled.
- `statement_events`: statements; compiled.
- `xa_events`: XA transactions; compiled.
- `mariadb_events`: events of MariaDB alone; compiled.
- `old_events`: events of old layouts; compiled.
- `row_events`: TABLE_MAP and rows events one by one, to show them; compiled.
- `transaction_buffer`: gathers the changes of a transaction; compiled.
"""
