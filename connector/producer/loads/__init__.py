"""Loads of tables while the source's log is published.

- `table_loads`: the loads of a producer: their rounds, and how far each is.
- `open_round`: a round until the stream has reached its place.
- `round_events`: publishes the events of a round.
"""
