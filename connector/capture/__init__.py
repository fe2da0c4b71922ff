"""MySQL's binary log, live or in files, into pieces of transactions. The only stage that knows MySQL.

- Before: `connection`, `source_facts`, `privileges`, `cascades`, `preflight`, `source_state`; `filters`; `snapshot`.
- The way of the bytes: `stream` opens the dump, `frames` cuts events out of its bytes, `decoder` takes them in turn,
  `group` gathers a transaction's rows, `reader` hands its pieces out.
- Files: `log_files` finds them, `log_reader` reads one after the other; `salvage`, `resync` go on behind damage.
- What an event is: `event`, `event_types`; `format_description`, `gtid_tagged`, `query`, `heartbeat`, `payload`.
- `heartbeat_row`: what is written on the source to be seen in its log.
- What a row is: `tables`, `table_map`, `columns`, `charsets`, `multibyte`, `rows`, `values`, `text`, `jsontext`;
  `memory` guards every byte that is read or written. `shaping`, `reshape`: what a rule of the filters makes of rows.

Compiled modules (`.pyx`) do what happens for every event and row, Python what is rare.
"""
