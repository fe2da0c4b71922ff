"""The log read by Structured Streaming, in one of two modes.

- `stream`: reads the log from given offsets on: the modes, and every transition between them.
- `kafka_source`: the event topic as a stream of Spark, for both modes.
- `micro_batches`: micro-batch mode: as many messages at once as fit, read by Python workers.
- `range_task`: what a worker does: reads ranges of offsets, and reduces them.
- `segment_builder`: reduces a partition's messages to segments.
- `foreign_loads`: leaves the rows of loads for other targets out.
- `parts`: what is read: messages, or what a task has made of them.
- `task_result`: parts as bytes, from a worker to the driver.
- `python_workers`: starts workers before they are needed.
- `worker`: makes tasks cheap; Spark's daemon of Python workers.
- `continuous`: continuous mode: each message as it arrives.
- `load_monitor`: finds the log busy or idle, which decides the mode.
- `batch_sizer`: decides the number of messages in a micro-batch.
- `batch_queue`: the bounded queue from Spark's thread to the applier's.
- `socket_sink`: sends messages from a Python worker of Spark to this process.
"""
