"""`thl apply`: applies the log to a target; the commands that steer it.

- `applier`: one run of `thl apply`: claim, handshake, stream.
- `from_relay`: one run without Kafka and Spark, from a relay.
- `claimant`: an applier as its target knows it, over all its claims.
- `core`: turns batches of messages into commits on the target.
- `partition_buffers`: messages that wait for their turn.
- `sequencer_feed`: gives the sequencer what comes next: messages of a partition, or segments of all.
- `open_commit`: the next commit: collects the changes of its events, and stages them on the target.
- `commit_batch`: its events, counted.
- `segment_changes`: the net changes of its segments, joined.
- `next_position`: the target's position, and the one that the next commit writes.
- `stop_condition`: `--to-seqno`, `--to-event`, `--to-gtid`, `--to-time`, `--to-heartbeat`.
- `quarantine`: `target.on_error: quarantine`: finds the event and the table that the target refuses.
- `skips`: events and tables that an operator leaves out.
- `rewind`: `--from-seqno`: applies a part of the log again.
- `replay_check`: checks that a part of the log can be applied again.
- `opening`: the core of a claimed target, on Kafka's log.
- `finish_intent`: finishes a commit of several writers, for commands other than `thl apply`.
- `undo`: `thl undo`: takes a target's data back to an earlier event.
- `invert`: the inverse of an event.
"""
