"""The protocol's model of loads of tables: `connector.producer.loads.loads` itself, between a small source and targets.

- `acts`: draws what may happen in the ordinary course of things.
- `machine`: what may happen, in any order; what must hold; the rules.
- `producer`: runs the real `TableLoads` as a producer does, on the model's Kafka.
- `publishing`: events and positions, in Kafka transactions.
- `rounds`: rounds of consistent views.
- `service`: the state of a run.
- `source`: a server with one table: its binary log, and what a view shows of it.
- `target`: a target that applies loads beside the stream.
- `test_load_rules_matter`: each rule broken alone is found.
"""
