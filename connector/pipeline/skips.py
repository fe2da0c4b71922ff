"""Events that an operator has named to be left out: which ones, and what they would have changed.

What is left out is looked at only as far as it can be read: it may be left out for the very reason that it cannot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from connector.errors import ConfigError, LogDamaged, Unsupported
from connector.reassemble.chunks import Chunks
from connector.reassemble.collapse import Collapse
from connector.reassemble.message import Message
from connector.thl.header import FragmentHeader
from connector.thl.layout import TableName
from connector.thl.net import ANY, LeftOut
from connector.thl.replay import SAVEPOINTS
from connector.thl.run import EDGES
from connector.thl.words import Seqno


class Skips:
    """The events to leave out.

    Args:
        seqnos: which.
        by: who says so, user@host.
        because: why.
    """

    def __init__(self, seqnos: Collection[Seqno] = (), by: str = "", because: str = "") -> None:
        self._seqnos = sorted(seqnos)
        self._by = by
        self._because = because
        self._tables: set[TableName] = set()
        self._rows = 0
        self._chunks = Chunks("")

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
            self._chunks = Chunks(topic)
        collapse = Collapse(topic)
        try:
            whole = self._chunks.whole(message)
            if whole is None:
                return
            told = [one for one in whole.statements() if not one.sql.startswith(SAVEPOINTS)]
            self._tables.update(TableName(one.schema or ANY, ANY) for one in told)
            self._rows = collapse.add(whole, self._rows)
        except (LogDamaged, Unsupported, ValueError):
            self._tables.add(TableName(ANY, ANY))  # a shard may have any name
        self._tables.update(layout.name for layout, _ in collapse.met())

    def left_out(self, header: FragmentHeader) -> LeftOut:
        """What is to be noted of an event, all of whose fragments were looked at.

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
            tables=tuple(sorted(self._tables)),
        )
