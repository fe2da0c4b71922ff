"""A log's epochs: what control records say, and the proof that a position lies on the log's history.

- `control`: the records of `thl.<service>.control`: the log's identity, its epochs, its partition map.
- `history`: which epoch gave which seqno; proves that a target or consumer lies on the log.
- `loads`: the loads of tables: requests, and how far each is.
- `load_pause`: a reason for which no round of loads begins.
- `newest_load`: the newest load of each table, as commands show it.
- `fork`: the events that a failover left behind (trapped events).
"""
