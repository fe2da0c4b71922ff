"""Every event of a binary log file as the format has it: `thl binlog --events`.

- `walk`: cuts a file into events, also those of a compressed transaction.
- `fields`: the fields of every type of event.
- `control_fields`: of events about the log itself.
- `transaction_fields`: of events that begin and end transactions.
- `statement_fields`: of statements, and of events that belong to one.
- `row_fields`: of TABLE_MAP and rows events.
- `printing`: an event as text or JSON, and the chosen events.
"""
