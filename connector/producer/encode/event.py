"""The event that is being encoded, as far as it has come."""

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
        begin: its start in the source.
        limit: a fragment's bytes.
        change_header: encodes the header of a row change, for the cutter.
        place: a layout's shard, and whether the table is bookkeeping.
    """

    __slots__ = (
        "_asked",
        "_crc32",
        "_place",
        "_rows",
        "begin",
        "bookkeeping",
        "cutter",
        "fragno",
        "head",
        "held",
        "query_bytes",
        "route",
        "shards",
        "size",
        "written",
    )  # fmt: skip

    def __init__(self, begin: TransactionStart, limit: int, change_header: Head, place: Place) -> None:
        self.begin = begin
        self.cutter = FragmentCutter(limit, change_header)
        self.held: list[Rows | Statement] = []
        self._place = place
        self.shards: set[str] = set()  # of its rows; "" for a statement, whose tables are not known
        self.bookkeeping = True  # as far as its rows go
        self._rows = 0
        self.size = 0  # bytes, as `Digest` counts them
        self._crc32 = 0
        self._asked = Asked()
        self.query_bytes = 0  # besides: of the texts of statements that changed rows
        self.head: EventHeader | None = None
        self.route: Route | None = None
        self.fragno = 0
        self.written = 0  # rows that are in fragments

    def add(self, change: Rows | Statement) -> None:
        """Count a change, and keep it until `held` is emptied."""
        self.query_bytes += len(self._asked.another(change) or "")
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
        """The digest of all its changes so far, whatever their batches and fragments."""
        return Digest(self._rows, self.size, self._crc32)
