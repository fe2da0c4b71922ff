"""SQL sessions with the source.

- `connection`: sessions, TLS, errors.
- `source_facts`: version and settings, read at a start.
- `privileges`: grants.
- `source_state`: extent and retention of the binary log, and the GTIDs executed.
- `replication_status`: the channels by which it replicates from others, and their lag.
- `mariadb_state`: the same of a MariaDB.
- `dump`: the binary log as a replica gets it.
- `semi_sync`: semi-synchronous replication: the source's settings and state, acknowledgements.
- `shared_socket`: a socket that one thread reads while another writes.
- `gtid_set`: GTID sets as the dump command wants them.
- `snapshot_point`: a consistent view and its position.
- `heartbeat_table`: heartbeats written on the source.
- `replica`: replicas that publishing waits for.
"""
