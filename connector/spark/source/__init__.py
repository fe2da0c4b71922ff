"""The log as DataFrames: Spark's data source `thl`.

The driver does not read the log. The producer's position names the last finished event, a point lookup from the
partitions' ends finds its offsets, and executors read everything before it in offset ranges
(`log.reading.offset_range`).

- `read`: `read_thl`, `stream_thl`, `register`.
- `options`: the options of the format.
- `source`: the data source: batch and stream.
- `ends`: finds offsets of events, from the driver.
- `offset`: Spark's offset of the format.
- `task`: reads one offset range, in an executor.
- `changes`: row changes as Arrow; compiled.
- `arrow_columns`: columns of Arrow that grow by a row at a time; compiled.
- `columns`: the columns of a row change.
- `typed`: the changes of one table, as columns of its own types.
"""
