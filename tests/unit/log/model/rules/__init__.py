"""What may happen to a service. The first argument of each is the service, the others are drawn.

- `source`: transactions, crashes and failovers.
- `producer`: steps of producers, and changes of their configuration.
- `kafka`: transaction markers, compaction, loss of data.
- `applier`: steps of appliers, what operators ask of them, readers of their targets.
- `relay`: recovery without Kafka.
"""
