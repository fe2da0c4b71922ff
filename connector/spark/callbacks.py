"""The connections over which Spark's JVM calls this process, as `foreachBatch` does."""

from __future__ import annotations

import logging
from threading import Lock
from typing import Final

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import SparkContext

LOG: Final = logging.getLogger(__name__)


class Callbacks:
    """Ends the connections of queries that have ended.

    Py4j keeps one, and a thread of this process, for each thread of the JVM that has ever called, and each query has a
    thread of its own: an applier that changes its mode, or connects again, would gather them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._queries = 0

    def begin(self) -> None:
        """Note a query that is about to call back."""
        with self._lock:
            self._queries += 1

    def end(self) -> None:
        """Note that a query has ended; close the connections if it was the last one."""
        with self._lock:
            self._queries -= 1
            gateway = SparkContext._gateway
            if self._queries or gateway is None:
                return
            try:
                # As PySpark does when it begins to listen: the JVM closes them, and makes others when it calls.
                server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
                address = server.getCallbackClient().getAddress()
                server.resetCallbackClient(address, gateway._callback_server.get_listening_port())
            except (Py4JError, OSError):
                LOG.debug("Spark's JVM has ended with its connections", exc_info=True)
