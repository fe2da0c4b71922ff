"""Writes log lines, events with fields, to standard error: as text for people or as JSON for programs."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from pathlib import PurePath
from typing import Final, Literal

from connector.errors import printable
from connector.redaction import redacted, without_secrets

Format = Literal["text", "json"]

LOG: Final = logging.getLogger("connector.thread")
COMMAND: Final = logging.getLogger("connector.command")
REPEATED = 60.0  # seconds for which a repeated line of librdkafka is suppressed
KINDS = 1000  # different lines of librdkafka that are remembered
_NUMBERS = re.compile(r"[0-9]+")
_PLAIN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields that were passed as `extra` with the event."""
    return {name: value for name, value in record.__dict__.items() if name not in _PLAIN}


class TextFormatter(logging.Formatter):
    """`2025-03-19T11:07:32.123Z INFO publish epoch started epoch=3`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, followed by the traceback if there is one."""
        stage = record.name.removeprefix("connector.")
        fields = "".join(f" {name}={value}" for name, value in fields_of(record).items())
        line = printable(f"{_time(record)} {record.levelname} {stage} {record.getMessage()}{fields}")
        if not record.exc_info:
            return line
        traceback = f"\n{self.formatException(record.exc_info)}".replace("\n", "\n  ")
        return line + printable(traceback, "\n\t")


class JsonFormatter(logging.Formatter):
    """One ASCII object per line: no character moves a terminal's cursor or ends a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger and event, then the fields."""
        event: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(without_secrets(event), default=lambda value: redacted(str(value)))


def set_up_logs(format: Format, level: int = logging.INFO) -> None:
    """Log events of this package from `level` on to standard error, and warnings of other packages."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    handler.addFilter(_not_raised_too)
    handler.addFilter(Repetitions())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    threading.excepthook = _thread_failed
    logging.getLogger("connector").setLevel(level)


def are_json() -> bool:
    """True if lines on standard error are JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def echo(text: str, level: int = logging.INFO, *, exc_info: bool = False, **fields: object) -> None:
    """Write a line for the operator to standard error: as it is, or where log lines are JSON, as one of them.

    Args:
        text: the line.
        level, exc_info, fields: of the log line.
    """
    if are_json():
        COMMAND.log(level, text, extra=fields, exc_info=exc_info)
    else:
        sys.stderr.write(text + "\n")


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    """Log the exception that ended a thread; Python's own traceback could show secrets."""
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        LOG.error("a thread has failed", exc_info=failed.exc_value)


class Repetitions(logging.Filter):
    """Suppresses repeated lines of librdkafka, which reports an unavailable broker many times a second.

    Lines are equal if their texts without numbers are. The next line that passes has the number of suppressed ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}  # time of the last line, number suppressed since

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False to suppress the line."""
        text = record.getMessage()
        if "[thrd:" not in text:
            return True
        kind = _NUMBERS.sub("0", text)
        last, suppressed = self._seen.get(kind, (-REPEATED, 0))
        if record.created - last < REPEATED:
            self._seen[kind] = last, suppressed + 1
            return False
        if len(self._seen) >= KINDS:
            self._seen.clear()
        self._seen[kind] = record.created, 0
        if suppressed:
            record.repeated = suppressed
        return True


def _not_raised_too(record: logging.LogRecord) -> bool:
    """Suppress tracebacks that py4j logs for a lost connection: it also raises the error."""
    return not record.exc_info or "py4j" not in PurePath(record.pathname).parts


def _time(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
