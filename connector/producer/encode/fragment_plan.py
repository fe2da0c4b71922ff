"""Where an event is cut into fragments: between changes and between rows, by their encoded bytes."""

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
    """What one fragment will hold.

    Args:
        items: as `FragmentWriter.write` takes them.
        size: their bytes, but for a few of framing.
        rows: how many.
        table: of the newest rows among them, to name it in an error.
        metadata: which statements their rows are of (`connector.log.transaction.rows_query`).
    """

    items: list[bytes | RowSlice] = field(default_factory=list)
    size: int = 0
    rows: int = 0
    table: TableName | None = None
    metadata: dict[str, str] = field(default_factory=dict)


class FragmentCutter:
    """Gathers the changes of one event into groups of about `limit` bytes.

    A group leaves only when something does not fit beside it any more, so what `rest` gives at the end is
    never empty unless the event is. Neither a row nor a statement is cut here: a larger one is a group alone.
    What was added is referred to, not copied, until its group has left.

    Args:
        limit: bytes to aim for.
        head: encodes a row change's head, or remembers it.
    """

    def __init__(self, limit: int, head: Head) -> None:
        self._limit = limit
        self._head = head
        self._group = FragmentPlan()
        self._asked = Asked()

    def add(self, change: Rows | Statement) -> Iterator[FragmentPlan]:
        """Take a change.

        Yields:
            The groups that are full with it.
        """
        query = self._asked.another(change)
        told = 0 if query is None else len(query.encode())
        if isinstance(change, Statement):
            text = encoded.statement(change)
            if self._group.items and self._group.size + told + len(text) > self._limit:
                yield self.rest()
            self._tell(query, told)
            self._group.items.append(text)
            self._group.size += len(text)
            return
        head = self._head(change.layout, change.action, change.before, change.after)
        ends, first, start = change.ends, 0, 0
        if self._group.items and ends and self._group.size + told + len(head) + ends[0] > self._limit:
            yield self.rest()
        self._tell(query, told)
        while first < len(ends):
            room = self._limit - self._group.size - len(head)
            stop = bisect_right(ends, start + room, lo=first)
            if stop == first:
                if self._group.items:
                    yield self.rest()
                    continue
                stop = first + 1
            end = ends[stop - 1]
            self._put(change, head, stop - first, start, end)
            first, start = stop, end

    def _tell(self, query: str | None, size: int) -> None:
        if query is not None:
            self._group.metadata[key(len(self._group.items))] = query
            self._group.size += size

    def _put(self, change: Rows, head: bytes, count: int, start: int, end: int) -> None:
        group = self._group
        group.items.append((head, count, change.data, start, end))
        group.size += len(head) + end - start
        group.rows += count
        group.table = change.layout.name

    def rest(self) -> FragmentPlan:
        """What has not left yet; the next group begins empty."""
        group, self._group = self._group, FragmentPlan()
        return group
