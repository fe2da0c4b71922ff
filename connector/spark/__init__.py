"""Spark: the log as DataFrames of row changes, batch and streaming; the applier's stream; Debezium's messages.

    read_thl, stream_thl   row changes as a DataFrame
    typed                  the row changes of one table, as columns of the table's own types
    register               the format `thl` for `spark.read.format` and `spark.readStream.format`

- `session`: a Spark session.
- `settings`: its settings, with their reasons.
- `jvm_errors`: what its JVM writes, and why it does not start.
- `jvm_memory`: the memory of its JVM as metrics.
- `callbacks`: the connections over which its JVM calls this process.
- `checkpoint`: its private folders.
- `training`: a run without Kafka, for the archive of the JVM's classes.
- `master`: the address of a cluster's master.
- `executors`: a cluster's executors: waits for them, verifies them, notices when they are lost.
- `probe`: what an executor reports of itself.
- `source/`: the data source `thl`.
- `stream/`: the applier's reading: micro-batch and continuous mode.
- `debezium/`: rows as Debezium's messages.
"""

from connector.spark.source.read import read_thl, register, stream_thl
from connector.spark.source.typed import layout_in, layout_of, typed

__all__ = ["layout_in", "layout_of", "read_thl", "register", "stream_thl", "typed"]
