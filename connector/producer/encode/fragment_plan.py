"""Cuts an event into fragments: between changes and between rows, by their encoded bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from connector.log.ids import Action
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.rows_query import Asked, key
from connector.producer.encode import change as encoded

Head = Callable[[TableLayout, Action, bytes, bytes], bytes]
RowSlice = tuple[bytes, int, bytes | bytearray, int, int]  # head, count, data, start, stop


@dataclass(slots=True)
class FragmentPlan:
    """The content of one fragment.

    Args:
        items: changes, for `FragmentWriter.write`.
        size: their bytes, but for a few of framing.
        rows: their number.
        table: of the newest rows among them, to name it in an error.
        metadata: the statements that changed the rows (`connector.log.transaction.rows_query`).
    """

    items: list[bytes | RowSlice] = field(default_factory=list)
    size: int = 0
    rows: int = 0
    table: TableName | None = None
    metadata: dict[str, str] = field(default_factory=dict)


class FragmentCutter:
    """Gathers the changes of one event into plans of about `limit` bytes.

    A plan leaves only when the next change does not fit into it, so the last one, of `drain`, is never empty unless the
    event is. Neither a row nor a statement is cut here: a larger one has a plan of its own. Added changes are
    referenced, not copied, until their plan has left.

    Args:
        limit: bytes to aim for.
        head: encodes a row change's header, or remembers it.
    """

    def __init__(self, limit: int, head: Head) -> None:
        self._limit = limit
        self._head = head
        self._plan = FragmentPlan()
        self._asked = Asked()

    def add(self, change: Rows | Statement) -> Iterator[FragmentPlan]:
        """Add a change.

        Yields:
            The plans that are full with it.
        """
        query = self._asked.another(change)
        query_size = 0 if query is None else len(query.encode())
        if isinstance(change, Statement):
            text = encoded.statement(change)
            if self._plan.items and self._plan.size + query_size + len(text) > self._limit:
                yield self.drain()
            self._add_query(query, query_size)
            self._plan.items.append(text)
            self._plan.size += len(text)
            return
        head = self._head(change.layout, change.action, change.before, change.after)
        ends, first, start = change.ends, 0, 0
        if self._plan.items and ends and self._plan.size + query_size + len(head) + ends[0] > self._limit:
            yield self.drain()
        self._add_query(query, query_size)
        while first < len(ends):
            room = self._limit - self._plan.size - len(head)
            stop = bisect_right(ends, start + room, lo=first)
            if stop == first:
                if self._plan.items:
                    yield self.drain()
                    continue
                stop = first + 1
            end = ends[stop - 1]
            self._put(change, head, stop - first, start, end)
            first, start = stop, end

    def _add_query(self, query: str | None, size: int) -> None:
        if query is not None:
            self._plan.metadata[key(len(self._plan.items))] = query
            self._plan.size += size

    def _put(self, change: Rows, head: bytes, count: int, start: int, end: int) -> None:
        plan = self._plan
        plan.items.append((head, count, change.data, start, end))
        plan.size += len(head) + end - start
        plan.rows += count
        plan.table = change.layout.name

    def drain(self) -> FragmentPlan:
        """The last plan, as far as it is filled; the next one begins empty."""
        plan, self._plan = self._plan, FragmentPlan()
        return plan
