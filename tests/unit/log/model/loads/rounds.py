"""Rounds of consistent views: what `connector.mysql.snapshot.load_round` promises to the producer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Final

from connector.log.ids import Action
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import SourcePosition
from tests.support.batches import rows as encoded
from tests.unit.log.model.loads.source import LAYOUT, NAME, Row, Source, Table

SESSIONS: Final = 2


class Opened:
    """The table, in an open round."""

    published = NAME
    definition: Sequence[Rows | Statement] = (Statement("shop", "CREATE TABLE t (id int PRIMARY KEY, a int, b int)"),)
    key_columns = ("id int  ",)
    load_identity = ("2026-11-25", "id int  ")
    has_key = True
    refusal = None
    estimate = 1

    def is_key(self, after: tuple[str, ...]) -> bool:
        """The producer writes nothing else."""
        return len(after) == 1 and after[0].isdecimal()


class Round:
    """A round, by some sessions, each with a view of its own.

    Args:
        source: the server.
        after: the tables, and the key up to which the rows are in the log.
        keys: the tables of which some keys alone are read.
        lock: take a lock.
        chunks: how many it reads.
        chunk_rows: the rows of each.
    """

    waits_until_consumed_is_visible = True
    lock_waits_for_commits = True
    place_is_after_the_view = True

    def __init__(
        self, source: Source, after: Mapping[TableName, Any], keys: Mapping[TableName, Any], *, lock: bool,
        chunks: int, chunk_rows: int,
    ) -> None:  # fmt: skip
        self._source, self._chunks, self._chunk_rows = source, chunks, chunk_rows
        self._views: list[Table] = []
        self._ended = False
        self.after = after.get(NAME)
        self._keys = [int(key) for (key,) in keys.get(NAME, ())]
        self.locked = lock
        self.position = SourcePosition("", 0)
        self.time, self.server_id, self.server_uuid = 1, 1, source.uuid
        self.names: frozenset[TableName] = frozenset(after)
        self.tables: dict[TableName, Opened] = {}

    def open(self, consumed: SimpleNamespace) -> None:
        """Fix the views, then the position."""
        source = self._source
        if self.locked:
            if self.lock_waits_for_commits:
                source.show(source.flying)
            self._views = [source.view()] * SESSIONS
        else:
            if self.waits_until_consumed_is_visible:
                source.show(one for one in source.flying if one.number in consumed.gtid_set)
            early = source.end
            for _ in range(SESSIONS):
                source.happens()
                self._views.append(source.view())
            source.happens()
        self.position = source.end if self.locked or self.place_is_after_the_view else early
        self.tables = {name: Opened() for name in self.names}

    def rows(self, names: Collection[TableName]) -> Iterator[tuple[TableName, Rows]]:
        """Read chunks, the sessions in turn; the last one has no end. Or some keys."""
        if self._keys and NAME in names:
            there = [key for key in self._keys if key in self._views[0]]
            if there:
                yield NAME, _read(tuple((key, self._views[0][key]) for key in there))
            if gone := [key for key in self._keys if key not in there]:
                yield NAME, _gone(tuple(gone))
            return
        for number in range(self._chunks if NAME in names else 0):
            if self._ended:
                return
            view, after = self._views[number % SESSIONS], int(self.after[0]) if self.after else -1
            keys = sorted(key for key in view if key > after)
            found = keys[: self._chunk_rows]
            if len(found) < self._chunk_rows:
                self._ended = True
            if found:
                self.after = (str(found[-1]),)
                yield NAME, _read(tuple((key, view[key]) for key in found))

    def progress(self, name: TableName) -> tuple[tuple[str, ...] | None, bool]:
        """How far it has read."""
        return self.after, self._ended

    def failed(self, name: TableName) -> None:
        """No table of it fails."""

    def close(self) -> None:
        """End the sessions."""


@cache
def _read(rows: tuple[tuple[int, Row], ...]) -> Rows:
    return encoded(LAYOUT, Action.READ, *((None, [key, *row]) for key, row in rows))


@cache
def _gone(keys: tuple[int, ...]) -> Rows:
    return encoded(LAYOUT, Action.DELETE, *(([key], None) for key in keys), before=b"\1")


def decoded_keys(rows: Rows) -> list[int]:
    """The keys of deletes, each of which takes one byte."""
    ends = [0, *rows.ends]
    assert all(end - begin == 6 for begin, end in pairwise(ends)), "a delete of another form"
    return [rows.data[begin + 3] >> 1 for begin in ends[:-1]]


def decoded(rows: Rows) -> list[tuple[int, Row]]:
    """The rows that were read; each number of them takes one byte."""
    found, start = [], 0
    for end in rows.ends:
        image = bytes(rows.data[start:end])
        assert len(image) == 10, "a row of another form"
        found.append((image[4] >> 1, (image[6] >> 1, image[8] >> 1)))
        start = end
    return found
