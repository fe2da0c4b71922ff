"""The log on Kafka; the only folder that uses Kafka's client library.

- `client`: properties, error mapping, the error callback. `consumer`: the only factory of consumers.
- `log_reader`: reads a log's topics to their ends. `arrow_reader`: messages as Arrow batches. `large_messages`: those
  that Spark does not carry. `tails`: partitions that lost their end. `handshake`: a position on the log's history.
  `trapped`: events that the source lacks.
- `transactions`: the transactional producer. `requests`: to go offline. `records`, `prepared_records`: the JSON of the
  control, position and prepared topics.
- `topics`, `acls`: administration. `registry`: the schema registry.
"""
