"""The log read by Structured Streaming, in one of two modes.

stream         the log from given offsets on: the modes, and every transition between them
micro_batches  micro-batch mode: as many messages at once as fit
continuous     continuous mode: each message as it comes
load_monitor   busy or idle: which mode the load calls for
batch_sizer    the number of messages in a micro-batch
handover       the bounded queue between Spark's thread and the applier's
socket_sink    the way of a message from a Python worker of Spark to this process
"""
