"""The binary log: bytes cut into events, decoded and gathered into transactions.

- `reader`: reads transactions from a stream or a file; `log_reader`: from files, also damaged ones
- `log_files`: names and bytes of files, compressed or not; `salvage`, `resync`: reading on behind damage
- `frames`: cuts bytes into events; `event`: the header; `raw`: events as the bytes of files
- `decoder`: the loop, GTIDs and rows; by kind: `log_events`, `statement_events`, `xa_events`, `mariadb_events`,
  `old_events`
- `transaction_buffer`: gathers the changes of a transaction
- `events`: bodies of events
"""
