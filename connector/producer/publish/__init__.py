"""Publishes fragments and the producer's position, in Kafka transactions.

- `publisher`: the thread that writes to Kafka.
- `queue`: the publisher's bounded queue.
- `pacing`: decides when a Kafka transaction ends, and when the next begins.
- `fragments`: the publisher's work for every fragment; compiled.
- `replica_gate`: the interface to the replicas that must have a transaction before it is published.
- `acknowledger`: the interface to a source whose commits wait until Kafka has them.
"""
