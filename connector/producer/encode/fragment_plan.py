"""Cuts an event into fragments, between changes and between rows, by their encoded bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from connector.log.ids import Action
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.rows_query import RowsQueries, key
from connector.producer.encode import change as encoded

EncodeHeader = Callable[[TableLayout, Action, bytes, bytes], bytes]
RowSlice = tuple[bytes, int, bytes | bytearray, int, int]  # header, count, data, start, stop


@dataclass(slots=True)
class FragmentPlan:
    """The content of one fragment.

    Args:
        items: the changes, for `FragmentWriter.write`.
        size: bytes of the changes, without some bytes of framing.
        rows: number of rows.
        table: the table of the newest rows, for errors.
        metadata: the statements that changed the rows (`connector.log.transaction.rows_query`).
    """

    items: list[bytes | RowSlice] = field(default_factory=list)
    size: int = 0
    rows: int = 0
    table: TableName | None = None
    metadata: dict[str, str] = field(default_factory=dict)


class FragmentCutter:
    """Gathers the changes of one event into plans of about `limit` bytes.

    A plan is returned only when the next change does not fit, so the last one, of `drain`, is empty only for an empty
    event. Rows and statements are not cut here: a larger one gets a plan of its own. Added changes are referenced, not
    copied, until their plan is returned.

    Args:
        limit: target size in bytes.
        encode_header: returns a row change's encoded header.
    """

    def __init__(self, limit: int, encode_header: EncodeHeader) -> None:
        self._limit = limit
        self._encode_header = encode_header
        self._plan = FragmentPlan()
        self._queries = RowsQueries()

    def add(self, change: Rows | Statement) -> Iterator[FragmentPlan]:
        """Add a change.

        Yields:
            The plans that it fills.
        """
        query = self._queries.another(change)
        query_size = 0 if query is None else len(query.encode())
        if isinstance(change, Statement):
            text = encoded.statement(change)
            if self._plan.items and self._plan.size + query_size + len(text) > self._limit:
                yield self.drain()
            self._add_query(query, query_size)
            self._plan.items.append(text)
            self._plan.size += len(text)
            return
        header = self._encode_header(change.layout, change.action, change.before, change.after)
        ends, first, start = change.ends, 0, 0
        if self._plan.items and ends and self._plan.size + query_size + len(header) + ends[0] > self._limit:
            yield self.drain()
        self._add_query(query, query_size)
        while first < len(ends):
            room = self._limit - self._plan.size - len(header)
            stop = bisect_right(ends, start + room, lo=first)
            if stop == first:
                if self._plan.items:
                    yield self.drain()
                    continue
                stop = first + 1
            end = ends[stop - 1]
            self._put(change, header, stop - first, start, end)
            first, start = stop, end

    def _add_query(self, query: str | None, size: int) -> None:
        if query is not None:
            self._plan.metadata[key(len(self._plan.items))] = query
            self._plan.size += size

    def _put(self, change: Rows, header: bytes, count: int, start: int, end: int) -> None:
        plan = self._plan
        plan.items.append((header, count, change.data, start, end))
        plan.size += len(header) + end - start
        plan.rows += count
        plan.table = change.layout.name

    def drain(self) -> FragmentPlan:
        """Return the last plan, and begin an empty one."""
        plan, self._plan = self._plan, FragmentPlan()
        return plan
