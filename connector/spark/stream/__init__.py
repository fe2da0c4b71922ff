"""The log read by Structured Streaming, in one of two modes.

- `stream`: reads the log from given offsets on: the modes, and every transition between them.
- `kafka_source`: the event topic as a stream of Spark, for both modes.
- `micro_batches`: micro-batch mode: as many messages at once as fit.
- `continuous`: continuous mode: each message as it arrives.
- `load_monitor`: finds the log busy or idle, which decides the mode.
- `batch_sizer`: decides the number of messages in a micro-batch.
- `handover`: the bounded queue from Spark's thread to the applier's.
- `socket_sink`: sends messages from a Python worker of Spark to this process.
"""
