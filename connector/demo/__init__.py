"""`thl demo`: replicates a shop from a real MySQL through Kafka and Spark to SQLite, and kills processes meanwhile.

- `scenario`: the scenario in order, up to the comparison.
- `stage`: starts the servers, `thl produce` and `thl apply`.
- `shop`: the shop's tables.
- `rows`: random rows from a seed.
- `workload`: a mixed workload from several connections.
- `traffic`: the workload's transactions.
- `chaos`: a huge transaction, and tables that change meanwhile.
- `probe`: reads the target while it is written.
- `screen`: shows progress on a terminal.
"""
