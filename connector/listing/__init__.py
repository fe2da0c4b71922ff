"""Reading events for people: of the log (`thl list`), and of a source's binary log (`thl binlog`).

- `log`: fragments from Kafka in seqno order, those that were given up known as such. `choice`: which are wanted.
- `tungsten`: Tungsten's `thl list` layout. `as_json`: the same as JSON.
- `transactions`: a source's transactions, whole ones only, held back in a `spool`. `selection`: which are wanted.
- `tungsten_event`, `json_event`: how they look; `tungsten_rows`, `json_rows`: their rows, compiled, as `rows`
  finds them and `text` writes them.
"""
