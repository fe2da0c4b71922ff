"""`thl produce`: writes a source's transactions to the log.

- `producer`: one run, from state to state.
- `states`: the states, and the transitions between them.
- `going_online`: the six steps of going online, and what an online producer holds.
- `given_start`: the start of `--start` where the log exists: it is ignored, or refused.
- `ownership`: the epochs that this process began: it must not fence a newer producer or continue another log.
- `compared_stream`: the source's stream, opened after the log's last event is compared with the source.
- `prepared_xa`: XA transactions between XA PREPARE and XA COMMIT.
- `heartbeats`: rows written on the source; their events carry the heartbeat's name.
- `semi_sync_monitor`: watches whether commits on the source wait for this producer (`source.semi_sync`).
- `replicas`: waits for the replicas of `publish.wait_for`.
- `sources/`: a live server, its archive, or files.
- `loads/`: loads of tables while the log is published, in rounds.
- `records/`: completes partial row images from a store of whole rows.
- `encode/`: encodes transaction batches as numbered fragments.
- `publish/`: writes fragments and the position in Kafka transactions.
"""
