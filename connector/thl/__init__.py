"""The words of a Transaction History Log as types, and the pure rules of its protocol.

No I/O, no clock, no vendor: everything here is decided by its arguments alone.

- `words`: seqno, epoch, shard, log id and the enumerations.
- `event_id`, `gtid`: how a place in the source's history is written.
- `header`: what every fragment starts with. `layout`: how a table's rows are laid out in it.
- `piece`: what `capture` gives to `encode`. `fragment`: what `encode` gives to `publish`.
- `position`, `control`: what the producer remembers, in Kafka. `history`, `online`: what it proves with them.
- `ledger`: which events are finished, contiguous and not voided. `net`: what `reassemble` gives to `write`.
"""
