"""Two models of a table that must agree: the source's rows, and the rows after applying net changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from io import BytesIO

from fastavro import schemaless_reader

from connector.log.compact.net_changes import Images, NetChanges
from tests.support.fragments import SCHEMA

UNION = ["null", "long", "double", "string", "bytes"]
Row = tuple[int | float | str | bytes | None, ...]

assert SCHEMA is not None


def decoded(images: Images, columns: int) -> list[Row]:
    """Decodes images with fastavro instead of the connector."""
    rows, start = [], 0
    for end in images.ends:
        one = BytesIO(bytes(images.data[start:end]))
        rows.append(tuple(schemaless_reader(one, UNION) for _ in range(columns)))
        assert one.read() == b""
        start = end
    return rows


class Keyed:
    """A target table with a primary key: refuses what a database would refuse."""

    def __init__(self, key: Sequence[int]) -> None:
        self.key = tuple(key)
        self.rows: dict[Row, Row] = {}

    def of(self, row: Row) -> Row:
        return tuple(row[i] for i in self.key)

    def do(self, net: NetChanges) -> None:
        width = len(net.layout.columns)
        for row in decoded(net.deletes, width):
            del self.rows[self.of(row)]
        for row in decoded(net.updates, width):
            assert self.of(row) in self.rows
            self.rows[self.of(row)] = row
        for row in decoded(net.inserts, width):
            assert self.of(row) not in self.rows
            self.rows[self.of(row)] = row


class Partly(Keyed):
    """A keyed target table for changes of some columns, as in `net_changes.Partial`."""

    def do(self, net: NetChanges) -> None:
        width = len(net.layout.columns)
        partial = net.partial
        changed, moved = (
            ([], []) if partial is None else (self._told(partial.changed, net), self._told(partial.moved, net))
        )
        taken = []
        for told, base in moved:
            old = self.rows[base]
            taken.append(tuple(told.get(index, old[index]) for index in range(width)))
        for _, base in moved:
            del self.rows[base]
        for told, base in changed:
            old = self.rows[base]
            new = tuple(told.get(index, old[index]) for index in range(width))
            assert self.of(new) == base
            self.rows[base] = new
        super().do(net)
        for row in taken:
            assert self.of(row) not in self.rows
            self.rows[self.of(row)] = row

    def _told(self, images: Images, net: NetChanges) -> list[tuple[dict[int, int | float | str | bytes | None], Row]]:
        """The columns that each image has, and the key of its row."""
        width = len(net.layout.columns)
        found = []
        for row in decoded(images, width + 1 + len(self.key)):
            bits = row[width]
            assert isinstance(bits, bytes)
            told = {index: row[index] for index in range(width) if bits[index // 8] >> index % 8 & 1}
            assert len(told) < width
            found.append((told, row[width + 1 :]))
        return found


class Counted:
    """A target table without a key."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = Counter(rows)

    def do(self, net: NetChanges) -> None:
        width = len(net.layout.columns)
        assert len(net.updates) == 0
        for row in decoded(net.deletes, width):
            assert self.rows[row] > 0
            self.rows[row] -= 1
        self.rows.update(decoded(net.inserts, width))
        self.rows = +self.rows
