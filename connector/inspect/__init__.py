"""Prints events for people: of the log and of binary log files.

- `thl_events/`: events of the log, chosen and in order (`thl list`, `thl tail`).
- `binlog_events/`: events of binary log files (`thl binlog --events`).
- `formats/`: text, JSON and Avro.
- `info`: `thl info`.
- `source_files`: `thl info --source`.
- `index`: `thl index`.
- `relay`: `thl list --relay`, `thl index --relay`.
- `trapped`: `thl trapped`.
- `selection`: the chosen transactions of binary log files (`thl binlog`).
- `terminal`: standard output, escaped if it is a terminal.
- `transactions`: prints transactions of binary log files.
"""
