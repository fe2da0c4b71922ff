"""A small simulation to try the protocol in: a Kafka, a source, producers, appliers and their targets.

Each keeps only what the protocol rests on. Everything that decides is the real code of `connector.log`.
"""
