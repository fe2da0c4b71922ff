"""`thl produce`: a source's transactions into the log.

producer         one run: its states, and every transition between them
going_online     the six steps of going online, and what an online producer holds
ownership        the epochs that this process has begun: no newer producer is fenced, no other log continued
compared_stream  the source's stream, opened after the log's last event is compared with the source
prepared_xa      XA transactions between XA PREPARE and XA COMMIT
heartbeats       rows written on the source; their events carry the heartbeat's name
replicas         publication waits for the replicas of `publish.wait_for`
sources/         a live server, its archive, or files
encode/          transaction batches into numbered fragments
publish/         fragments and the position into Kafka, in Kafka transactions
"""
