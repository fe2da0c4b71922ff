"""SQL sessions with the source.

- `connection`: sessions, TLS, errors
- `source_facts`: version and settings; `privileges`: grants; `source_state`, `mariadb_state`: extent of the binary log
- `dump`, `gtid_set`: the binary log as a replica gets it
- `snapshot_point`: a consistent view and its position
- `heartbeat_table`: heartbeats written on the source
- `replica`: replicas that publishing waits for
"""
