"""The protocol's model: scenarios of everything that may happen to a service, each held to the promises.

- `ending`: what must hold once everything has ended and was started again.
- `loads/`: a model of its own: tables are loaded while the log is published.
- `machine`: the rules, in their order; and the start of a run.
- `ranges`: gives a sequencer messages as readers do.
- `rules/`: what may happen, by the part to which it happens.
- `scenarios`: runs scenarios by number, by the million too.
- `service`: the state of a run.
- `simulation/`: the parts: Kafka, source, producers, appliers, targets; and scenarios.
- `troubles`: the kinds of trouble, and the errors that each explains.
"""
