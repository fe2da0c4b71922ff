"""The words of a Transaction History Log as types, and the pure rules of its protocol.

No I/O, no clock, no vendor: everything here is decided by its arguments alone.

- `words`: seqno, epoch, shard, log id and the enumerations.
- `event_id`, `gtid`: how a place in the source's history is written.
- `header`: what every fragment starts with. `layout`: how a table's rows are laid out in it. `shard`: where it goes.
- `piece`: what `capture` gives to `encode`. `fragment`: what `encode` gives to `publish`. `finished`, `place`: what
  both tell of an event's end. `crc32`: of what was encoded.
- `position`, `control`, `definition`: what the producer remembers, in Kafka. `progress`, `gtid_run`: how its position
  moves.
- `history`, `online`, `tail`, `trapped`: what it proves with them before it goes online.
- `ledger`: which events are finished, contiguous and not voided, `chain` for each partition; `run`: many at once.
- `net`: what `reassemble` gives to `write`.
"""
