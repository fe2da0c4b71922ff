"""The log on Kafka; the only folder that uses Kafka's client library.

- `client`: properties, error mapping, the error callback.
- `consumer`: the only factory of consumers.
- `log_reader`: reads a log's topics to their ends.
- `published_log`: the log's position for those who may do without it.
- `ends`: the first and the last event, found without a scan.
- `tails`: finds partitions that lost their end.
- `handshake`: proves that a position lies on the log's history.
- `trapped`: events that the source lacks.
- `message_batch`: messages as Arrow batches.
- `arrow_reader`: reads the event topic to its end.
- `range_reader`: reads ranges of offsets.
- `large_messages`: messages that Spark does not carry.
- `transactions`: the transactional producer.
- `requests`: requests to a producer to go offline.
- `records`: the JSON of the control and position topics.
- `prepared_records`: the records of the prepared topic.
- `topics`: creates and checks topics.
- `acls`: the access rules of the topics.
- `registry`: the schema registry.
"""
