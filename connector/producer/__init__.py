"""`thl produce`: writes a source's transactions to the log.

- `producer`: one run, from state to state.
- `states`: the states, and the transitions between them.
- `going_online`: the six steps of going online, and what an online producer holds.
- `initial_load`: the beginning of an initial load: the tables' definitions.
- `table_loads`: the loads of tables while the log is published: their rounds, and how far each is.
- `round_gate`: when a round of loads may begin.
- `repair`: loads of some keys of a table.
- `open_round`: a round of loads until the stream has reached its position.
- `round_events`: publishes the events of loads.
- `ownership`: the epochs that this process began: it must not fence a newer producer or continue another log.
- `compared_stream`: the source's stream, opened after the log's last event is compared with the source.
- `prepared_xa`: XA transactions between XA PREPARE and XA COMMIT.
- `heartbeats`: rows written on the source; their events carry the heartbeat's name.
- `semi_sync_monitor`: watches whether commits on the source wait for this producer (`source.semi_sync`).
- `replicas`: waits for the replicas of `publish.wait_for`.
- `sources/`: a live server, its archive, or files.
- `records/`: completes partial row images from a store of whole rows.
- `encode/`: encodes transaction batches as numbered fragments.
- `publish/`: writes fragments and the position in Kafka transactions.
"""
