"""Leaves out the events and tables that an operator names.

A skipped event is read as far as possible: it may be skipped because it cannot be read. An excluded table stays on the
target as it is. The target records the exclusion with the position, so later appliers exclude the table, too, until an
initial load or a load of the table creates it again, or the source drops it. A table can also be excluded during an
initial load, when an applier finds a table that the target cannot hold.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from connector.clock import Clock
from connector.errors import ConfigError, LogDamaged, Unsupported
from connector.log.compact.compact import Compactor
from connector.log.compact.net_changes import ANY, Ddl, LeftOut
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.format.row_parts import RowParts
from connector.log.ids import Kind, Seqno
from connector.log.reading.event_range import EDGES
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import PART, TABLE, Part
from connector.log.transaction.position import TargetPosition
from connector.log.transaction.statement_options import SAVEPOINTS
from connector.targets.target import TargetDatabase
from connector.targets.target_schema import Excluded

LOG: Final = logging.getLogger(__name__)


class Skips:
    """The events to skip.

    Args:
        seqnos: the seqnos of the events.
        by: the operator, user@host.
        reason: the operator's reason.
        done: the seqno of a DDL event that was done on the target by hand; None: none.
    """

    def __init__(
        self, seqnos: Collection[Seqno] = (), by: str = "", reason: str = "", *, done: Seqno | None = None
    ) -> None:
        self.done = done
        self._seqnos = sorted({*seqnos, *(() if done is None else (done,))})
        self._by = by
        self._reason = reason
        self._tables: set[TableName] = set()
        self._rows = 0
        self._statements: list[Statement] = []
        self._row_parts = RowParts("")

    def __bool__(self) -> bool:
        return bool(self._seqnos)

    def __contains__(self, seqno: Seqno) -> bool:
        return seqno in self._seqnos

    def __iter__(self) -> Iterator[Seqno]:
        return iter(self._seqnos)

    def next(self, seqno: Seqno) -> int:
        """Return the first skipped event at or after an event; a seqno beyond every event if there is none."""
        return next((one for one in self._seqnos if one >= seqno), 1 << 63)

    def note(self, message: Message, topic: str) -> None:
        """Record the tables that a fragment would have changed: none where a load is for other targets."""
        header = message.header
        if header.fragno == 0:
            self._tables.clear()
            self._rows = 0
            self._statements.clear()
            self._row_parts = RowParts(topic)
        if message.for_others:
            return
        compactor = Compactor(topic)
        try:
            whole = self._row_parts.whole(message)
            if whole is None:
                return
            statements = [one for one in whole.statements(topic) if not one.sql.startswith(SAVEPOINTS)]
            self._statements += statements
            self._tables.update(TableName(one.schema or ANY, ANY) for one in statements)
            self._rows = compactor.add(whole, self._rows)
        except (LogDamaged, Unsupported, ValueError):
            self._tables.add(TableName(ANY, ANY))  # a shard may have any name
        self._tables.update(layout.name for layout, _ in compactor.layouts_seen())

    def ddl(self, header: FragmentHeader) -> Ddl:
        """Return the event that was done by hand, after `note` of its last fragment.

        Raises:
            ConfigError: it is not DDL, or has rows.
        """
        if header.kind is not Kind.DDL or not self._statements or header.rows:
            raise ConfigError(
                "only a DDL event without rows can be done by hand",
                hint="--skip-seqno skips an event of rows; --exclude-table excludes a table from then on",
                seqno=header.seqno,
            )
        return Ddl(seqno=header.seqno, statements=tuple(self._statements), commit_time=header.commit_time or 0)

    def left_out(self, header: FragmentHeader, done: tuple[TableName, ...] | None = None) -> LeftOut:
        """Return the target's record of a skipped event, after `note` of its last fragment.

        Args:
            header: the header of its last fragment.
            done: the tables that the operator changed by hand; None: the event is skipped.

        Raises:
            ConfigError: it is the start or end of a load, which every later state needs.
        """
        if header.metadata.get("snapshot") in EDGES:
            raise ConfigError(
                "the start and end of an initial load cannot be skipped",
                seqno=header.seqno,
                snapshot=header.metadata["snapshot"],
            )
        if header.kind is Kind.LOAD and header.metadata.get(PART) not in (Part.ROWS, Part.REPAIR):
            raise ConfigError(
                "the start and the end of a table's load, and the rows of a table without a key, cannot be skipped",
                hint="--exclude-table goes on without the table, until it is loaded again (thl load)",
                seqno=header.seqno,
                table=header.metadata.get(TABLE),
            )
        return LeftOut(
            seqno=header.seqno,
            epoch=header.epoch,
            event_id=header.event_id or "",
            by=self._by,
            reason=self._reason,
            tables=tuple(sorted(self._tables if done is None else done)),
            by_hand=done is not None,
        )


@dataclass(frozen=True, slots=True)
class ExcludedTables:
    """The tables that are not applied from the next event on.

    Args:
        tables: the names of the tables in the log.
        by: the operator, user@host.
        reason: the operator's reason.
    """

    tables: Collection[TableName]
    by: str
    reason: str

    def exclude(self, target: TargetDatabase, position: TargetPosition, clock: Clock) -> None:
        """Record the exclusions in a claimed target, at its position; existing exclusions stay."""
        entry = Excluded(since=Seqno(position.seqno + 1), at=clock.now(), by=self.by, reason=self.reason)
        new = [name for name in self.tables if name not in target.target_schema.excluded]
        if not new:
            return
        for name in new:
            known = name in target.target_schema
            fields = {"service": position.service, "table": name, "since_seqno": entry.since, "known": known}
            LOG.warning("continuing without a table", extra=fields)
        target.exclude(dict.fromkeys(new, entry))
        target.commit(position, [])
