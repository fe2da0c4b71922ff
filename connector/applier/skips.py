"""Events that an operator has named to be left out, or has done by hand: which ones, and what they would have changed.

What is left out is looked at only as far as it can be read: it may be left out for the very reason that it cannot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

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
from connector.log.transaction.statement_options import SAVEPOINTS


class Skips:
    """The events to leave out.

    Args:
        seqnos: which.
        by: who says so, user@host.
        because: why.
        done: a DDL event that was done on the target by hand.
    """

    def __init__(
        self, seqnos: Collection[Seqno] = (), by: str = "", because: str = "", *, done: Seqno | None = None
    ) -> None:
        self.done = done
        self._seqnos = sorted({*seqnos, *(() if done is None else (done,))})
        self._by = by
        self._because = because
        self._tables: set[TableName] = set()
        self._rows = 0
        self._statements: list[Statement] = []
        self._chunks = RowParts("")

    def __bool__(self) -> bool:
        return bool(self._seqnos)

    def __contains__(self, seqno: Seqno) -> bool:
        return seqno in self._seqnos

    def __iter__(self) -> Iterator[Seqno]:
        return iter(self._seqnos)

    def next(self, seqno: Seqno) -> int:
        """The first that is not before an event; beyond every event where there is none."""
        return next((one for one in self._seqnos if one >= seqno), 1 << 63)

    def look(self, message: Message, topic: str) -> None:
        """Note which tables a fragment would have changed."""
        header = message.header
        if header.fragno == 0:
            self._tables.clear()
            self._rows = 0
            self._statements.clear()
            self._chunks = RowParts(topic)
        collapse = Compactor(topic)
        try:
            whole = self._chunks.whole(message)
            if whole is None:
                return
            told = [one for one in whole.statements(topic) if not one.sql.startswith(SAVEPOINTS)]
            self._statements += told
            self._tables.update(TableName(one.schema or ANY, ANY) for one in told)
            self._rows = collapse.add(whole, self._rows)
        except (LogDamaged, Unsupported, ValueError):
            self._tables.add(TableName(ANY, ANY))  # a shard may have any name
        self._tables.update(layout.name for layout, _ in collapse.met())

    def ddl(self, header: FragmentHeader) -> Ddl:
        """The event that was done by hand, all of whose fragments were looked at.

        Raises:
            ConfigError: it is other than DDL, or has rows: what it does is in the log, row by row.
        """
        if header.kind is not Kind.DDL or not self._statements or header.rows:
            raise ConfigError(
                "only a DDL event without rows can be done by hand",
                hint="--skip-seqno skips an event of rows; --exclude-table excludes a table from then on",
                seqno=header.seqno,
            )
        return Ddl(seqno=header.seqno, statements=tuple(self._statements), commit_time=header.commit_time or 0)

    def left_out(self, header: FragmentHeader, done: tuple[TableName, ...] | None = None) -> LeftOut:
        """What is to be noted of an event, all of whose fragments were looked at.

        Args:
            done: the tables that somebody has seen to by hand; None: nobody has.

        Raises:
            ConfigError: without it nothing behind it can be right.
        """
        if header.metadata.get("snapshot") in EDGES:
            raise ConfigError("an initial load's beginning and end cannot be left out", seqno=header.seqno)
        return LeftOut(
            seqno=header.seqno,
            epoch=header.epoch,
            event_id=header.event_id or "",
            by=self._by,
            because=self._because,
            tables=tuple(sorted(self._tables if done is None else done)),
            by_hand=done is not None,
        )
