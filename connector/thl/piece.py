"""What `capture` gives to `encode`: a transaction of the source in pieces of bounded size.

A small transaction is one piece with `begin` and `ending`. A large one is a first piece with `begin`, any
number of middle ones, and a last one with `ending`. Pieces of two transactions never mix. A piece without
changes and without transaction (`begin` and `ending` both None and no changes) never occurs; a `Passed` tells
that the source went on without anything for us.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.thl.layout import TableLayout
from connector.thl.position import SourcePosition
from connector.thl.words import Action, Kind, Outcome


@dataclass(slots=True)
class Rows:
    """Rows of one table and action, already in Avro.

    Args:
        layout: the table as the TABLE_MAP event described it; the same object while nothing changed.
        action: INSERT (after images), DELETE (before images) or UPDATE (both).
        data: `count` concatenated Avro `Row` records (schemas/fragment.avsc): before, after.
        ends: `array('Q')` of `count` end offsets into `data`, ascending; the last equals `len(data)`.
    """

    layout: TableLayout
    action: Action
    data: bytes | bytearray
    ends: array[int]

    @property
    def count(self) -> int:
        """How many rows."""
        return len(self.ends)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the source, e.g. a DDL.

    Args:
        schema: the session's default schema, "" if none.
        sql: the text, decoded with the session's character set.
        options: session state it was executed under: `sql_mode`, `time_zone`, `character_set_client`, `timestamp` …
    """

    schema: str
    sql: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Begin:
    """What is known of a transaction when it begins."""

    server_id: int
    thread_id: int
    gtid: str | None
    last_committed: int
    sequence_number: int
    start: SourcePosition  # where its first event (its GTID event, if any) stands
    kind: Kind
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known only when a transaction has ended.

    Args:
        end: the place after its last event; with file and offset as the source numbers them.
        commit_time: µs since 1970 UTC, the commit's where the source tells it (8.0+), else the last event's.
        outcome: COMMIT, or ROLLBACK for changes to non-transactional tables of a rolled back transaction.
    """

    end: SourcePosition
    commit_time: int
    outcome: Outcome


@dataclass(slots=True)
class Piece:
    """A piece of one transaction, in order."""

    begin: Begin | None
    changes: list[Rows | Statement]
    ending: Ending | None


@dataclass(frozen=True, slots=True)
class Passed:
    """The source went past something that is not for us: filtered, empty, ignorable. Only between transactions.

    Args:
        end: the place after it.
        gtid: the GTID that it had, if any: it counts as seen.
    """

    end: SourcePosition
    gtid: str | None
