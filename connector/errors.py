"""The errors that this package raises on purpose, and the exit codes of `thl`.

An error says what failed, where (service, seqno, file and position, topic-partition-offset), what to do, and whether a
retry can help. The CLI prints it as one message, never as a traceback, and exits with its `exit_code`.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Self

from connector.redaction import redacted

# Errors of the system that tell of a disk, not of a setting or of permissions.
_DISK_FAILURES: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

# docs/command-line.md has the same table; a test keeps them equal.
EXIT_CODES: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "Done, or ended by SIGTERM, SIGINT, `thl offline` or a bound.",
        1: "`thl status`: a problem. `thl demo`: source and target differ.",
        2: "The command line or the configuration is wrong; the message names the option or field.",
        3: "A server or a topic is not set up as needed; the hint is the statement that fixes it.",
        4: "The source, the brokers, the registry or the target does not answer, a local disk is full or fails, or DDL "
        "disturbed an initial load.",
        5: "The binary log, the log on Kafka, the record store or the target's files are damaged or incomplete.",
        6: "An event, type, character set or DDL is not supported, or the target cannot hold a value.",
        7: "A newer producer or applier has taken over.",
        8: "Source, log or target have different histories; `thl trapped`: there are trapped events.",
        9: "Source and target differ.",
        10: "A server of the sandbox cannot be fetched or started.",
        11: "The Java process of Spark has ended, or its cluster does not answer or gives no executor.",
        12: "The time of `--timeout` has passed.",
        13: "`thl verify`: no table differs, but not all captured tables were compared.",
        70: "A defect of this program; `THL_DEBUG=1` shows the traceback.",
        130: "Interrupted at the terminal.",
    }
)


class ConnectorError(Exception):
    """Base of the package's errors. Raised itself where no other type fits. Not retryable.

    Args:
        message: the failure, in one sentence.
        hint: the remedy: a statement, a command or an option; "" if there is none.
        where: ids of the place, e.g. `service="shop", seqno=41, file="binlog.000002", pos=1748`.

    Attributes:
        tables: schema and name of the tables without which a target would have accepted the change; empty if the error
            is no table's fault.
    """

    retry: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1
    file_hint: str = ""
    tables: tuple[tuple[str, str], ...] = ()

    def __init__(self, message: str, *, hint: str = "", **where: object) -> None:
        message = redacted(message)
        super().__init__(message)
        self.message = message
        self.hint = redacted(hint)
        self.where = where

    def with_file_hint(self, hint: str) -> Self:
        """Set the remedy where a file is read without its server (`thl binlog`); return the error."""
        self.file_hint = redacted(hint)
        return self

    @property
    def located(self) -> str:
        """The message with the ids of the place, without the hint."""
        ids = " ".join(f"{name}={_shown(value)}" for name, value in self.where.items() if value is not None)
        return redacted(f"{self.message} [{ids}]" if ids else self.message)

    def __str__(self) -> str:
        text = _indented(self.located)
        return printable(f"{text}\n  hint: {_indented(self.hint)}" if self.hint else text, "\n\t")


def printable(text: str, kept: str = "") -> str:
    """Hide secrets and escape characters as `escaped` does.

    An escape may be within a secret; and together with what stands before it, it may make one.
    """
    return redacted(escaped(redacted(text), kept))


def escaped(text: str, kept: str = "") -> str:
    """Escape the characters that move a terminal's cursor or begin a line: names and values may hold any.

    Args:
        text: any text.
        kept: unprintable characters that stay.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in text
    )


def _indented(text: str) -> str:
    """Indent all lines but the first, so that a name with a line end cannot look like a message of its own."""
    return text.replace("\n", "\n    ")


def _shown(value: object) -> str:
    return printable(str(value))


class ConfigError(ConnectorError):
    """Raised when a configuration field, option or file is wrong. Not retryable: the user has to change it.

    Attributes:
        fields: wrong field → origin of its value (file, variable or flag), or None for a default or where the origin
            is not known; empty if no field of the configuration is wrong, but an option or a file.
    """

    exit_code = 2
    fields: Mapping[str, str | None] = MappingProxyType({})

    @classmethod
    def of_fields(
        cls, message: str, fields: Mapping[str, str | None], *, hint: str = "", **where: object
    ) -> ConfigError:
        """Return an error about fields of the configuration."""
        error = cls(message, hint=hint, **where)
        error.fields = dict(fields)
        return error


class PreflightError(ConnectorError):
    """Raised when a server is not set up as the connector needs it. Not retryable: the hint is the remedy.

    Attributes:
        problems: the errors that it combines; empty for a single one.
    """

    exit_code = 3
    problems: tuple[PreflightError, ...] = ()


class MissingPrivilege(PreflightError):
    """Raised when a user lacks a privilege. Not retryable: the hint is the GRANT."""


class Purged(PreflightError):
    """Raised when the source has purged the binary log that is needed next. Not retryable."""


class SourceUnavailable(ConnectorError):
    """Raised when the source does not answer or has closed the connection. Retryable."""

    retry = True
    exit_code = 4


class SourceChanged(ConnectorError):
    """Raised when DDL changed tables while an initial load was reading them. Retryable: the load starts again."""

    retry = True
    exit_code = 4


class CorruptBinlog(ConnectorError):
    """Raised when bytes of the binary log contradict its format: checksum, length, order of events. Not retryable."""

    exit_code = 5


class Unsupported(ConnectorError):
    """Raised for an event, type, row image, character set or DDL that is not supported. Not retryable.

    Nothing is skipped: the process stops there.
    """

    exit_code = 6


class BrokerUnavailable(ConnectorError):
    """Raised when Kafka does not answer, or refuses for a transient reason. Retryable."""

    retry = True
    exit_code = 4


class LogMissing(BrokerUnavailable):
    """Raised while no producer has begun the log. Retryable: it is waited for, which is no restart of anything."""


class RegistryUnavailable(ConnectorError):
    """Raised when the schema registry does not answer, or refuses for a transient reason. Retryable."""

    retry = True
    exit_code = 4


class UnsafeTopic(ConnectorError):
    """Raised when a topic's settings can lose data. Not retryable: the hint is the command that changes them."""

    exit_code = 3


class LogDamaged(ConnectorError):
    """Raised when the log on Kafka has a gap, lost its tail, or has wrong bytes in a fragment. Not retryable."""

    exit_code = 5


class EventsDeleted(LogDamaged):
    """Raised when the topic's retention has deleted events that a target needs next. Not retryable."""


class RecordsDamaged(ConnectorError):
    """Raised when the record store is damaged. Not retryable: it has to be rebuilt."""

    exit_code = 5


class DiskUnavailable(ConnectorError):
    """Raised when the disk of the relay, the archive or the record store is full or fails. Retryable once it is not."""

    retry = True
    exit_code = 4


def disk_error(error: OSError) -> type[ConfigError] | type[DiskUnavailable]:
    """Return the class for an error with a local folder: of its disk, or of the setting that names it."""
    return DiskUnavailable if error.errno in _DISK_FAILURES else ConfigError


class Fenced(ConnectorError):
    """Raised when a newer producer of the service, or a newer applier of the target, has taken over. Not retryable."""

    exit_code = 7


class HistoriesDiffer(ConnectorError):
    """Raised when the position of the target or of the source is not on the log's history. Not retryable.

    Nothing was changed.
    """

    exit_code = 8


class ShardsChanged(ConnectorError):
    """Raised to a reader of some shards at an event from which shards have other names. Not retryable.

    The reader goes on from there with the new names.
    """

    exit_code = 8


class TargetUnavailable(ConnectorError):
    """Raised when the target does not answer, or refuses for a transient reason. Retryable."""

    retry = True
    exit_code = 4


class TargetDiffers(ConnectorError):
    """Raised when row counts, tables or columns of the target are not as the log has them. Not retryable."""

    exit_code = 9


class TargetDamaged(TargetDiffers):
    """Raised when the target's own files are damaged: no table's fault. Not retryable."""

    exit_code = 5


class ValueNotRepresentable(ConnectorError):
    """Raised for a value or name that the target cannot hold exactly; names row and column. Not retryable."""

    exit_code = 6


class SandboxError(ConnectorError):
    """Raised when a server of the sandbox, or a program for it, cannot be fetched or started. Not retryable."""

    exit_code = 10


class SparkGone(ConnectorError):
    """Raised when Spark's JVM has ended. Not retryable in this process: start the command again."""

    exit_code = 11


class SparkUnavailable(ConnectorError):
    """Raised when Spark's cluster does not answer, gives no executor, or has ended the application.

    Not retryable in this process, whose Spark session belongs to that cluster: start the command again.
    """

    exit_code = 11


class TimedOut(ConnectorError):
    """Raised when a condition was not met within the time given. Retryable."""

    retry = True
    exit_code = 12
