"""The output of Spark's JVM: passed on, but for why it ends at its start, and for a warning that means nothing."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from threading import Lock, Thread
from types import TracebackType
from typing import Final

from connector import logs

LOG: Final = logging.getLogger(__name__)
JVM: Final = logging.getLogger("connector.spark.jvm")  # lines of the JVM itself, where log lines are JSON

_STANDARD_ERROR: Final = 2
_NOISE: Final = b"WARNING: Using incubator modules"
_UNCAUGHT: Final = 'Exception in thread "main" '
# How what a JVM writes begins when it ends without having started.
_FATAL: Final = (_UNCAUGHT.encode(), b"Error: ", b"Error occurred during initialization", b"Unrecognized VM option")
_SECONDS: Final = 5.0  # to wait for the end of what it writes


class JvmErrors:
    """The output of a JVM that starts within the context, which ends with an error if it does not start.

    The context is the file descriptor of its standard output and error. What the JVM writes goes to this process's
    standard error. The reason why it does not start is kept instead, for `cause`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._starting = True
        self._last: list[bytes] = []  # lines, from the first one of `_FATAL` on

    def __enter__(self) -> int:
        reading, self._writing = os.pipe()
        self._thread = Thread(target=self._pass_on, args=(reading,), daemon=True, name="jvm-errors")
        self._thread.start()
        return self._writing

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._writing)
        if kind is None:
            with self._lock:
                self._starting = False
                _say(b"".join(self._last))

    def _pass_on(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                with self._lock:
                    if self._starting and (self._last or line.startswith(_FATAL)):
                        self._last.append(line)
                    elif _NOISE not in line:
                        _say(line)

    def cause(self) -> str:
        """Return why the JVM has not started, once the context has ended; "" if it did not say."""
        self._thread.join(_SECONDS)
        text = b"".join(self._last).decode(errors="replace")
        LOG.debug("the last lines of Spark's JVM: %s", text)
        said = [line.removeprefix(_UNCAUGHT) for line in text.splitlines() if line and not line.startswith("\t")]
        return ": ".join(dict.fromkeys(said[:2]))


def _say(text: bytes) -> None:
    """Write to this process's standard error, which may be closed: the JVM must not wait for that."""
    if text and logs.are_json():
        for line in text.decode(errors="replace").splitlines():
            JVM.warning(line)
    elif text:
        with suppress(OSError):
            os.write(_STANDARD_ERROR, text)
