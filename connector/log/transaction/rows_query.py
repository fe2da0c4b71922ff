"""The statements that made an event's rows, in the metadata of its fragments, where the source logs them.

`rows_query.N` is the text of the statement that made the fragment's change N (counted from 0) and all later changes, in
the event's next fragments too, until the next such key. An empty text means that the statement is not known. Each text
is written once, with its first rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from connector.log.transaction.batch import Rows, Statement

KEY: Final = "rows_query."


def key(number: int) -> str:
    """The metadata's key for a change."""
    return f"{KEY}{number}"


class RowsQueries:
    """Finds where another statement begins among the changes of one event."""

    __slots__ = ("_query",)

    def __init__(self) -> None:
        self._query = ""

    def another(self, change: Rows | Statement) -> str | None:
        """Return the text of a change's statement; None if it is that of the change before."""
        query = (change.query if isinstance(change, Rows) else None) or ""
        if query == self._query:
            return None
        self._query = query
        return query

    def metadata(self, changes: Iterable[Rows | Statement]) -> Iterator[tuple[str, str]]:
        """The metadata entries of a fragment that consists of these changes."""
        for number, change in enumerate(changes):
            query = self.another(change)
            if query is not None:
                yield key(number), query
