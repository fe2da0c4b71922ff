"""Reads the log's protocol: pure code, no Kafka.

- `fragment_rules`: rules of the order of messages within a partition.
- `partition_state`: one partition, and the state machine that applies the rules.
- `sequenced_partition`: a partition of the whole log: limits of older epochs, offsets to resume from.
- `event_sequencer`: the whole log: events that are finished, in the order of their seqnos.
- `relay_sequencer`: a relay: its events, which are in order.
- `event_order`: the seam between these two and the apply core.
- `shard_sequencer`: some shards, joined by barriers.
- `offset_range`: a range of one partition's offsets, for parallel readers.
- `event_range`: whole events of a partition that are handled together.
- `retained`: what is left of a partition whose first messages retention has deleted.
- `search`: offsets by seqno or time, by binary search.
"""
