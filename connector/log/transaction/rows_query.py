"""The statement that made a fragment's rows, in its metadata, where the source logged it.

`rows_query.N` is the text of the statement that made the fragment's change N (from 0) and the later ones, also in the
event's next fragments, up to the next such key; an empty text: from there on it is not known. Each stands once, where
its first rows do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from connector.log.transaction.batch import Rows, Statement

KEY: Final = "rows_query."


def key(number: int) -> str:
    """The metadata's key for a change."""
    return f"{KEY}{number}"


class Asked:
    """Tells where another statement begins, along the changes of one event."""

    __slots__ = ("_query",)

    def __init__(self) -> None:
        self._query = ""

    def another(self, change: Rows | Statement) -> str | None:
        """The text that is to be told with this change; None where it is that of the change before."""
        query = (change.query if isinstance(change, Rows) else None) or ""
        if query == self._query:
            return None
        self._query = query
        return query

    def metadata(self, changes: Iterable[Rows | Statement]) -> Iterator[tuple[str, str]]:
        """The entries of a fragment with just these changes."""
        for number, change in enumerate(changes):
            query = self.another(change)
            if query is not None:
                yield key(number), query
