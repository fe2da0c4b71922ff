"""Continuous mode: Spark's continuous processing, a query that is planned once and reads without batches.

A micro-batch costs some 50 ms of CPU before its first row; here a message costs a fetch, and a Python worker sends it
to this process (see `socket_sink`). Only messages that arrive while the target commits are batched. The sockets'
buffers are the queue: if they are full, the worker waits, and with it Spark.

The worker must run on this machine, so Spark's executor must be the driver (`local[…]`). Each partition occupies one
task slot.
"""

from __future__ import annotations

import os
import selectors
import shutil
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from pyspark.sql.functions import udf

from connector import private_files as private
from connector.clock import Clock
from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable, ConfigError
from connector.kafka.message_batch import message_batch
from connector.spark import settings as spark_settings
from connector.spark.session import RunningQuery, SparkRun, answering
from connector.spark.stream.kafka_source import messages
from connector.spark.stream.parts import Batch
from connector.spark.stream.socket_sink import FrameDecoder, SocketSink

MOST: Final = 8 << 20  # approximate bytes of one connection that are received at once
RECEIVE: Final = 1 << 20
PATIENCE: Final = 30.0  # seconds to wait for a partition's worker, at the start and after each epoch


class Continuous:
    """Reads the messages of one topic from given offsets on as they arrive, each partition's in order.

    Args:
        session: the session; needs a slot of `Session.slots` for each partition.
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition of the topic; EARLIEST for its beginning.
        clock: the clock for the wait for workers.
        target: see `SocketSink`.

    Raises:
        ConfigError: Spark refuses the query, or workers cannot reach this process.
        SparkGone: the session's JVM has ended.
    """

    def __init__(
        self,
        session: SparkRun,
        kafka: Kafka,
        *,
        topic: str,
        offsets: Mapping[int, int],
        clock: Clock,
        target: str | None = None,
    ) -> None:
        self._partitions = len(offsets)
        self._clock = clock
        self._complete = clock.monotonic()  # the last time at which every partition had a worker
        self._connections: dict[socket.socket, FrameDecoder] = {}
        with ExitStack() as made:
            self._selector = made.enter_context(selectors.DefaultSelector())
            self._listening, address = self._listen(made)
            with answering():
                frame = messages(session, kafka, topic=topic, offsets=offsets, options=spark_settings.CONTINUOUS)
                # The function has a side effect, so Spark must call it once for every row.
                send = udf(SocketSink(address, target), "boolean").asNondeterministic()
                rows = frame.select(send("partition", "offset", "value").alias("sent"))
                writer = rows.writeStream.format("noop").trigger(continuous=spark_settings.EPOCH)
            self._query = RunningQuery(session, writer)
            self._made = made.pop_all()

    def _listen(self, made: ExitStack) -> tuple[socket.socket, str]:
        """Listen for connections of the workers.

        Returns:
            The socket, and its path.
        """
        try:
            folder = private.new_folder("thl-", None, "TMPDIR")
            made.callback(shutil.rmtree, folder, ignore_errors=True)
            address = os.fspath(folder / "sink")
            listening = made.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(address)
        except OSError as error:
            # A socket's path has at most about a hundred bytes.
            raise ConfigError(
                f"no socket in the temporary folder: {error}", hint="set a shorter TMPDIR", option="TMPDIR"
            ) from error
        listening.listen(self._partitions)
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ)
        return listening, address

    def ready(self) -> bool:
        """True while every partition is being read; before that, messages may be late."""
        self._accept()
        for connection in list(self._connections):
            if _ended(connection):
                self._drop(connection)
        return len(self._connections) >= self._partitions

    def check(self) -> None:
        """Check that the query still runs.

        Raises:
            BrokerUnavailable: Spark stopped reading, or a worker has ended; the message has the cause.
            SparkGone: the session's JVM has ended.
        """
        self._query.check()
        now = self._clock.monotonic()
        if self.ready():
            self._complete = now
        elif now - self._complete > PATIENCE:
            raise BrokerUnavailable("Spark stopped reading: a partition has no worker", partitions=self._partitions)

    def next(self, timeout: float) -> Batch | None:
        """Return the messages that have arrived.

        Returns:
            None if none arrived within `timeout` seconds.

        Raises:
            BrokerUnavailable: Spark could not read, or its worker has ended.
            SparkGone: the session's JVM has ended.
        """
        if not self._selector.select(timeout):
            self.check()
            return None
        found: dict[int, list[tuple[int, int, bytes | None]]] = {}
        left_out = 0
        # The oldest connection first: a replaced connection is read to its end before its successor.
        for connection, decoder in list(self._connections.items()):
            before = decoder.left_out
            for message in self._received(connection, decoder):
                found.setdefault(message[0], []).append(message)
            left_out += decoder.left_out - before
        self._accept()
        if not found:
            return None
        parts = (message_batch(*zip(*some, strict=True)) for _, some in sorted(found.items()))
        return Batch.of(parts, left_out=left_out)

    def stop(self) -> None:
        """Stop the query; messages that were not received are dropped."""
        self._query.stop()
        for connection in self._connections:
            connection.close()
        self._made.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except BlockingIOError:
                return
            connection.setblocking(False)
            self._connections[connection] = FrameDecoder()
            self._selector.register(connection, selectors.EVENT_READ)

    def _drop(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._connections[connection]
        connection.close()
        self._complete = self._clock.monotonic()

    def _received(self, connection: socket.socket, decoder: FrameDecoder) -> list[tuple[int, int, bytes | None]]:
        """Receive the messages of one connection."""
        found: list[tuple[int, int, bytes | None]] = []
        size = 0
        while size < MOST:
            try:
                data = connection.recv(RECEIVE)
            except BlockingIOError:
                return found
            if not data:
                # The task has ended: at the end of an epoch Spark starts another one, with its own connection.
                self._drop(connection)
                return found
            size += len(data)
            found += decoder.feed(data)
        return found


def _ended(connection: socket.socket) -> bool:
    """Return True once all bytes are received and the connection is closed."""
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
