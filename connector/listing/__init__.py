"""Reading events of the log for people.

- `log`: fragments from Kafka in seqno order, those that were given up known as such. `choice`: which are wanted.
- `tungsten`: Tungsten's `thl list` layout. `as_json`: the same as JSON.
"""
