"""The log as DataFrames of Spark: row changes of whole transactions, batch and streaming.

    read_thl, stream_thl   row changes as a DataFrame
    typed                  those of one table, as columns of the table's own types
    register               the format `thl` for `spark.read.format` and `spark.readStream.format`

The driver does not read the log: the producer's position names the last finished event, a point lookup from the
partitions' ends finds its offsets, and everything before is cut into offset ranges (`log.reading.offset_range`) that
executors read.

    session, settings, checkpoint  a Spark session, its settings with their reasons, its private folders
    source/    the data source `thl`
    stream/    the applier's reading: micro-batch and continuous mode
    debezium/  rows as Debezium's messages
"""

from connector.spark.source.read import read_thl, register, stream_thl
from connector.spark.source.typed import layout_in, layout_of, typed

__all__ = ["layout_in", "layout_of", "read_thl", "register", "stream_thl", "typed"]
