"""Writes row changes as Debezium's messages, for its sinks.

- `rows`: one run: writes the log's rows to one topic per table.
- `sink`: writes messages and progress in one Kafka transaction.
- `envelope`: keys, envelopes and tombstones of row changes.
- `envelope_types`: columns as Kafka Connect's types.
"""
