"""Reading events for people: of the log (`thl list`), and of a source's binary log (`thl binlog`).

- `log`: fragments from Kafka in seqno order; `partitions` reads them, `attempts` tells what was given up, `choice`
  which are wanted, `decoding` what they say. `follow`: the same as the log grows. `info`, `segments`: what it holds.
- `printing`: in the layout that is asked for: `tungsten`, Tungsten's `thl list`, with `specs`; `summaries`, a line a
  fragment; `as_json`; `container`, Avro.
- `transactions`: a source's transactions, whole ones only, held back in a `spool`. `selection`: which are wanted.
- `tungsten_event`, `json_event`: how they look; `tungsten_rows`, `json_rows`: their rows, compiled, as `rows`
  finds them and `text` writes them.
"""
