"""The event that is being encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from zlib import crc32

from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Rows, Statement, TransactionStart
from connector.log.transaction.layout import TableLayout
from connector.log.transaction.position import Digest
from connector.log.transaction.rows_query import RowsQueries
from connector.producer.encode.fragment import EventHeader
from connector.producer.encode.fragment_plan import EncodeHeader, FragmentCutter
from connector.producer.encode.routes import Route

ShardOf = Callable[[TableLayout], tuple[str, bool]]


class EncodedEvent:
    """One event from its `TransactionStart` on.

    Its changes are kept until its shard is decided; from then on (`header` is set) they go to the cutter.

    Args:
        begin: the start of the transaction.
        limit: target size of a fragment in bytes.
        change_header: encodes the header of a row change, for the cutter.
        shard_of: returns a layout's shard, and True if the table is bookkeeping.
    """

    __slots__ = (
        "_counts",
        "_crc32",
        "_logged_size",
        "_queries",
        "_rows",
        "_shard_of",
        "begin",
        "bookkeeping",
        "cutter",
        "fragno",
        "header",
        "held",
        "query_bytes",
        "route",
        "shards",
        "size",
        "written",
    )  # fmt: skip

    def __init__(self, begin: TransactionStart, limit: int, change_header: EncodeHeader, shard_of: ShardOf) -> None:
        self.begin = begin
        self.cutter = FragmentCutter(limit, change_header)
        self.held: list[Rows | Statement] = []
        self._shard_of = shard_of
        self.shards: set[str] = set()  # the shards of its rows; "" for a statement, whose tables are not known
        self.bookkeeping = True  # true while all rows are of bookkeeping tables
        self._rows = 0
        self._counts: dict[int, tuple[TableLayout, int, int]] = {}  # layouts by identity: hashing one hashes columns
        self.size = 0  # bytes of its changes
        self._logged_size = 0  # the same as the source logged them: `Digest` counts these
        self._crc32 = 0
        self._queries = RowsQueries()
        self.query_bytes = 0  # further bytes: the texts of statements that changed rows
        self.header: EventHeader | None = None
        self.route: Route | None = None
        self.fragno = 0
        self.written = 0  # number of rows in fragments

    def add(self, change: Rows | Statement) -> None:
        """Count a change, and keep it until `held` is emptied."""
        self.query_bytes += len(self._queries.another(change) or "")
        if isinstance(change, Rows):
            self.size += len(change.data)
            data = change.data if change.logged is None else change.logged
            self._rows += change.count
            _, rows, size = self._counts.get(id(change.layout), (None, 0, 0))
            self._counts[id(change.layout)] = change.layout, rows + change.count, size + len(change.data)
            shard, bookkeeping = self._shard_of(change.layout)
            self.shards.add(shard)
            self.bookkeeping &= bookkeeping
        else:
            data = change.sql.encode() + replay.values(change.options).encode()
            self.size += len(data)
            if not change.sql.startswith(replay.SAVEPOINTS):
                self.shards.add("")
                self.bookkeeping = False
        self._logged_size += len(data)
        self._crc32 = crc32(data, self._crc32)
        self.held.append(change)

    @property
    def counts(self) -> Iterable[tuple[TableLayout, int, int]]:
        """Return rows, and bytes of their images, by layout."""
        return self._counts.values()

    @property
    def digest(self) -> Digest:
        """Return the digest of all changes so far as the source logged them, whatever batches and fragments."""
        return Digest(self._rows, self._logged_size, self._crc32)
