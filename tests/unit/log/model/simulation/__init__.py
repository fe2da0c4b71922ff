"""A small simulation to try the protocol in: a Kafka, a source, producers, appliers, their relays and targets.

Each keeps only what the protocol rests on. What decides is the real code of `connector.log` and of the applier's
`SequencerFeed`, but for a commit of several writers, the relay and acknowledgements, whose code is bound to their I/O.
"""
