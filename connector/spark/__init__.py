"""The log as DataFrames of Spark: row changes of whole transactions, batch and streaming.

    read_thl, stream_thl   row changes as a DataFrame
    typed                  those of one table, as columns of the table's own types
    register               the format `thl` for `spark.read.format` and `spark.readStream.format`

Nobody reads the log before it is read: the producer's position tells the last finished event, its place is found from
the partitions' ends, and whatever lies before is cut into portions (`log.reading.offset_range`) that executors read.
"""

from connector.spark.source.read import read_thl, register, stream_thl
from connector.spark.source.typed import layout_in, layout_of, typed

__all__ = ["layout_in", "layout_of", "read_thl", "register", "stream_thl", "typed"]
