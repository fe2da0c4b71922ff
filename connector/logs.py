"""Log lines: events with fields, as text for people or JSON for machines, on standard error."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from pathlib import PurePath
from typing import Literal

from connector.errors import escaped
from connector.redaction import redacted

Format = Literal["text", "json"]

LOG = logging.getLogger("connector.thread")
REPEATED = 60.0  # seconds in which librdkafka says something once
KINDS = 1000  # of its lines that are remembered
_NUMBERS = re.compile(r"[0-9]+")
_PLAIN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """What was given as `extra` with the event."""
    return {name: value for name, value in record.__dict__.items() if name not in _PLAIN}


class TextFormatter(logging.Formatter):
    """`2025-03-19T11:07:32.123Z INFO publish epoch begun epoch=3`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback where there is one."""
        stage = record.name.removeprefix("connector.")
        fields = "".join(f" {name}={value}" for name, value in fields_of(record).items())
        line = escaped(f"{_time(record)} {record.levelname} {stage} {record.getMessage()}{fields}")
        if not record.exc_info:
            return redacted(line)
        traceback = f"\n{self.formatException(record.exc_info)}".replace("\n", "\n  ")
        return redacted(line + escaped(traceback, "\n\t"))


class JsonFormatter(logging.Formatter):
    """One object a line, in ASCII: nothing in it moves a terminal or looks like a line's end to anybody."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger and event, then the fields."""
        event: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        hidden = {name: redacted(value) if isinstance(value, str) else value for name, value in event.items()}
        return redacted(json.dumps(hidden, default=lambda value: redacted(str(value))))


def set_up_logs(format: Format, level: int = logging.INFO) -> None:
    """Let everything of ours log to standard error; of others only what warns."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    handler.addFilter(_not_raised_too)
    handler.addFilter(Repetitions())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    threading.excepthook = _thread_failed
    logging.getLogger("connector").setLevel(level)


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    """Log what ended a thread, as everything else is logged: Python's own words would show secrets."""
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        LOG.error("a thread has failed", exc_info=failed.exc_value)


class Repetitions(logging.Filter):
    """Lets what librdkafka says pass once in a while: of brokers that are gone it tells many times a second.

    Each line is known by its text without numbers. What was left out is counted in the next one that passes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}  # when it passed last, and how often it was left out since

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it passes."""
        text = record.getMessage()
        if "[thrd:" not in text:
            return True
        kind = _NUMBERS.sub("0", text)
        last, left_out = self._seen.get(kind, (-REPEATED, 0))
        if record.created - last < REPEATED:
            self._seen[kind] = last, left_out + 1
            return False
        if len(self._seen) >= KINDS:
            self._seen.clear()
        self._seen[kind] = record.created, 0
        if left_out:
            record.repeated = left_out
        return True


def _not_raised_too(record: logging.LogRecord) -> bool:
    """Leave out what py4j writes of a lost connection, with a traceback: it raises that as well."""
    return not record.exc_info or "py4j" not in PurePath(record.pathname).parts


def _time(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
