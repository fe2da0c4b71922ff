"""MySQL and MariaDB: server sessions, binary log, values, tables, filters.

- `server/`: SQL sessions with the source: facts, state, privileges, the dump of the binary log, the heartbeat table.
- `binlog/`: the binary log decoded into batches of transactions; files, streams, damaged files.
- `values/`: types, character sets and collations; row images into Avro.
- `snapshot/`: tables of the source, as the initial load, `thl load` and repairs read them.
- `schema_history/`: the source's tables at a position of the log.
- `transforms/`: configured filters and rules.
- `preflight/`: checks of the source before reading.
- `archive/`: a folder with the source's binary log files.
- `memory`: checked reads of events, and writes into buffers that grow; compiled.
- `fields`: reads the fields of rare events in Python.
- `compression`: expands compressed columns and events.
"""
