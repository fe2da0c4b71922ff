"""Every error this package raises on purpose.

An error says what happened, where (service, seqno, file and position, topic-partition-offset), what to do,
and whether trying again can help. The CLI prints it as one message and exits with `exit_code`; nobody sees a
traceback of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from connector.redaction import redacted


class ConnectorError(Exception):
    """Base of all our errors.

    Args:
        message: what happened, one sentence.
        hint: what the operator can do, a statement or a command where there is one.
        where: the ids that locate it, e.g. `service="shop", seqno=41, file="binlog.000002", pos=1748`.
    """

    retry: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", **where: object) -> None:
        message = redacted(message)
        super().__init__(message)
        self.message = message
        self.hint = redacted(hint)
        self.where = where

    def __str__(self) -> str:
        ids = " ".join(f"{name}={_shown(value)}" for name, value in self.where.items() if value is not None)
        text = f"{self.message} [{ids}]" if ids else self.message
        text = _within(text)
        return redacted(escaped(f"{text}\n  hint: {_within(self.hint)}" if self.hint else text, "\n\t"))


def escaped(text: str, kept: str = "") -> str:
    """Text without what moves a terminal or begins a line: names and values come from elsewhere, damaged ones too.

    Args:
        text: whatever.
        kept: characters that may stay although they cannot be printed.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in kept else one.encode("unicode_escape", "surrogatepass").decode("ascii")
        for one in text
    )


def _within(text: str) -> str:
    """Text whose further lines are set in: with a name that holds a line's end none looks like a line of ours."""
    return text.replace("\n", "\n    ")


def _shown(value: object) -> str:
    return escaped(str(value))


class ConfigError(ConnectorError):
    """Raised when a configuration field, option or file is wrong. Not retryable: the user has to change it.

    Attributes:
        fields: wrong field → origin of its value (file, variable or flag), or None for a default; empty if no field of
            the configuration is wrong, but an option or a file.
    """

    exit_code = 2
    fields: Mapping[str, str | None] = MappingProxyType({})

    @classmethod
    def of_fields(cls, message: str, fields: Mapping[str, str | None], *, hint: str = "") -> ConfigError:
        """Return an error about fields of the configuration."""
        error = cls(message, hint=hint)
        error.fields = dict(fields)
        return error


class PreflightError(ConnectorError):
    """A server is not set up as the connector needs it; the hint is the statement that mends it."""

    exit_code = 3


class Purged(PreflightError):
    """The source no longer has what comes next in its binary log."""


class SourceUnavailable(ConnectorError):
    """The source does not answer or closed the connection."""

    retry = True
    exit_code = 4


class SourceChanged(ConnectorError):
    """DDL changed tables while an initial load was reading them: the load can only begin anew."""

    retry = True
    exit_code = 4


class CorruptBinlog(ConnectorError):
    """Bytes of the binary log contradict the format: a checksum, a length, an order of events."""

    exit_code = 5


class Unsupported(ConnectorError):
    """An event, type, row image, charset or DDL that is not understood. Nothing is skipped: we stop."""

    exit_code = 6


class BrokerUnavailable(ConnectorError):
    """Kafka does not answer, or refused for a passing reason."""

    retry = True
    exit_code = 4


class RegistryUnavailable(ConnectorError):
    """The schema registry does not answer, or refused for a passing reason."""

    retry = True
    exit_code = 4


class UnsafeTopic(ConnectorError):
    """A topic exists with settings that could lose data."""

    exit_code = 3


class LogDamaged(ConnectorError):
    """The log on Kafka has a hole, lost its tail, or a fragment's bytes are wrong."""

    exit_code = 5


class Fenced(ConnectorError):
    """A newer producer of the service, or a newer applier of the target, has taken over."""

    exit_code = 7


class HistoriesDiffer(ConnectorError):
    """The target's position, or the source's, does not lie on the log's history. Nothing was changed."""

    exit_code = 8


class ShardsChanged(ConnectorError):
    """Shards have other names from an event on: who reads some of them reads on from there with names of now."""

    exit_code = 8


class TargetUnavailable(ConnectorError):
    """The target does not answer, or refused for a passing reason."""

    retry = True
    exit_code = 4


class TargetDiffers(ConnectorError):
    """The target is not in the state that the log says it is in: row counts, tables, columns."""

    exit_code = 9


class ValueNotRepresentable(ConnectorError):
    """A value or name that the target cannot hold exactly; the message names row and column."""

    exit_code = 6


class SandboxError(ConnectorError):
    """A disposable server of the sandbox, or what it is made of, could not be had."""

    exit_code = 10


class SparkGone(ConnectorError):
    """The JVM that reads the log has ended: the process ends with it, and is to be started again."""

    exit_code = 11


class TimedOut(ConnectorError):
    """What was waited for did not happen in the time that was given."""

    retry = True
    exit_code = 12
