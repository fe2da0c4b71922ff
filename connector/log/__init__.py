"""The Transaction History Log as types and rules: pure code, no I/O, no vendor's library.

- `ids`: seqno, epoch, shard, log id.
- `rules`: the rules that readers check, by name.
- `format/`: the bytes of a message.
- `transaction/`: a source's transactions as types.
- `gtid/`: GTID sets.
- `epochs/`: control records, history, forks.
- `writing/`: the log as its producer writes it.
- `reading/`: the order and completeness of events.
- `compact/`: events to net changes.
"""
