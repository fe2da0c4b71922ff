"""A small simulation to try the protocol in: a Kafka, a source, producers, appliers, their relays and targets.

Each keeps only what the protocol rests on. What decides is the real code of `connector.log` and of the applier's
`SequencerFeed`, but for a commit of several writers, the relay and acknowledgements, whose code is bound to their I/O.
An attribute of a class that is True is a rule of its own: `test_rules_matter` breaks it.

- `acts`: draws what may happen in the ordinary course of things.
- `applier`: an applier, from its claim to its commits.
- `commit`: one commit, of one writer or several.
- `event_fragments`: the fragments of an event.
- `going_back`: `--from-seqno` and undo.
- `going_online`: a producer's decision, before it publishes.
- `kafka`: partitions, transactions and their markers, data loss.
- `log_reading`: an applier's reading, by tasks too.
- `log_state`: the control records, position, tails and prepared transactions of a log.
- `producer`: a producer, from its fencing of the older one on.
- `relay`: an applier's relay on the disk of its host.
- `scenario`: draws scenarios, runs them, and shortens those that end badly.
- `source`: a binary log and its GTIDs, with crashes and failovers.
- `target`: a database with the position, the intent and the writers of an applier.
- `tasks`: what Spark's tasks read.
- `truth`: an observer of all, who holds them to the promises.
"""
