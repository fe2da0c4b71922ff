"""The event that is being encoded: what is known of it so far."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Rows, Statement, TransactionStart
from connector.log.transaction.layout import TableLayout
from connector.log.transaction.position import Digest
from connector.log.transaction.rows_query import Asked
from connector.producer.encode.fragment import EventHeader
from connector.producer.encode.fragment_plan import FragmentCutter, Head
from connector.producer.encode.routes import Route

Place = Callable[[TableLayout], tuple[str, bool]]


class Event:
    """One event from its `TransactionStart` on.

    Its changes are held back until its shard is decided; from then on (`head` set) they go to the cutter.

    Args:
        begin: what the source says of it.
        limit: a fragment's bytes.
        row_change_head: for the cutter.
        place: of a layout's rows: their shard, and whether they are others' bookkeeping.
    """

    __slots__ = (
        "_asked", "_crc32", "_place", "_rows", "begin", "bookkeeping", "cutter", "fragno", "head", "held", "route",
        "shards", "size", "told", "written",
    )  # fmt: skip

    def __init__(self, begin: TransactionStart, limit: int, row_change_head: Head, place: Place) -> None:
        self.begin = begin
        self.cutter = FragmentCutter(limit, row_change_head)
        self.held: list[Rows | Statement] = []
        self._place = place
        self.shards: set[str] = set()  # of its rows; "" for a statement, whose tables we do not know
        self.bookkeeping = True  # as far as its rows go
        self._rows = 0
        self.size = 0  # bytes, as `Digest` counts them
        self._crc32 = 0
        self._asked = Asked()
        self.told = 0  # bytes beside: of the texts of statements that made rows
        self.head: EventHeader | None = None
        self.route: Route | None = None
        self.fragno = 0
        self.written = 0  # rows that are in fragments

    def hold(self, change: Rows | Statement) -> None:
        """Take a change: count it, and keep it until `held` is emptied."""
        self.told += len(self._asked.another(change) or "")
        if isinstance(change, Rows):
            data: bytes | bytearray = change.data
            self._rows += change.count
            shard, bookkeeping = self._place(change.layout)
            self.shards.add(shard)
            self.bookkeeping &= bookkeeping
        else:
            data = change.sql.encode() + replay.values(change.options).encode()
            if not change.sql.startswith(replay.SAVEPOINTS):
                self.shards.add("")
                self.bookkeeping = False
        self.size += len(data)
        self._crc32 = crc32(data, self._crc32)
        self.held.append(change)

    @property
    def digest(self) -> Digest:
        """Of everything held so far, however it came in pieces and went out in fragments."""
        return Digest(self._rows, self.size, self._crc32)
