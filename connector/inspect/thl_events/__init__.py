"""Events of the log as Kafka holds them, for the commands that print them.

- `choice`: the chosen events.
- `log`: lists events.
- `follow`: the log as it grows.
- `partitions`: reads the event topic.
- `attempts`: groups messages into attempts at events.
- `decoding`: decodes messages.
- `completeness`: finds missing events.
"""
