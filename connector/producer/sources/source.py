"""What the producer asks of a source: the seam between it and `connector.mysql`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.definition import Definitions, Item
from connector.log.transaction.position import Finished, PositionRecord, SourcePosition
from connector.log.writing.online import SourceFacts


class Stream(Protocol):
    """A source's log, read from some place on. Never goes back by itself."""

    @property
    def ended(self) -> bool:
        """Whether there will be no more: of files. A server's stream raises instead."""

    def read(self, timeout: float) -> list[Item]:
        """What has come, in order; empty when nothing came within `timeout` seconds.

        Raises:
            SourceUnavailable: the connection is gone; the stream is only to be closed.
        """

    def close(self) -> None:
        """End the connection. May be repeated."""


class Load(Protocol):
    """An initial load, fixed at one moment when it was opened."""

    @property
    def position(self) -> tuple[SourcePosition, str | None]:
        """Where the stream goes on after it, and every GTID before that."""

    @property
    def tables(self) -> Definitions | None:
        """What the source's tables are at its moment; None where they are not followed."""

    def pieces(self) -> Iterator[TransactionBatch]:
        """The load as whole events, one a piece, from `snapshot=begin` to `snapshot=end`.

        Raises:
            SourceUnavailable: the server is gone: it has to begin anew.
            SourceChanged: DDL changed what was to be read: likewise.
        """

    def close(self) -> None:
        """End the session. May be repeated."""


@dataclass(frozen=True, slots=True)
class SnapshotCompleted:
    """The end of an initial load: in the same work as the event that is the load's last.

    Args:
        gtid_set: the transactions that the load contains; None where the source has no GTIDs.
    """

    gtid_set: str | None


class Source(Protocol):
    """A server whose log is read. Every method raises `SourceUnavailable` when it is gone."""

    def check(self, *, load: bool) -> None:
        """Make sure that it is set up as the producer needs it.

        Args:
            load: an initial load is to be taken, too.

        Raises:
            PreflightError: it is not.
        """

    def facts(self, *, new: bool) -> SourceFacts:
        """Who it is and where it stands.

        Args:
            new: a new log begins: also find the place where it starts, by the configuration.
        """

    def check_widened(self, before: Mapping[str, Any] | None, accepted: Sequence[str]) -> None:
        """Make sure that the log lacks nothing of what is captured from here on.

        Args:
            before: what was captured until now, as `SourceFacts.capture` had it; None: the log does not tell.
            accepted: patterns of tables that may be partial.

        Raises:
            PreflightError: it does, or nobody can tell.
        """

    def holds(self, finished: Finished) -> bool:
        """Whether the source's log still has this transaction: if not, it was purged, which is allowed."""

    def created(self, file: str) -> int:
        """When a file of its log that is being read was begun, seconds since 1970 UTC; 0 when unknown."""

    def redo(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """Its log from the position's last finished event on, that one included.

        Args:
            position: where it was.
            tables: what the source's tables are at the position, behind that event; None when that is not known.
        """

    def after(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """Its log from the position on, where the tables are these."""

    def load(self) -> Load:
        """Fix the moment of an initial load."""
