"""Loads of tables while the source's log is published.

- `loads`: the loads of a producer, in rounds.
- `known_loads`: what was asked for, and how far each load is.
- `round_publication`: publishes a round at its position.
- `gate`: when a round of loads may begin.
- `open_round`: a round of loads until the stream has reached its position.
- `events`: publishes the events of loads.
- `repair`: loads of some keys of a table.
- `online`: the part of an online producer that loads use.
- `initial`: the beginning of an initial load: the tables' definitions.
"""
