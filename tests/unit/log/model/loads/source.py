"""A server with one table: transactions are in its binary log first, and visible to a view later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from connector.errors import SourceChanged
from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.batch import (
    PositionAdvance,
    Rows,
    Statement,
    TransactionBatch,
    TransactionEnd,
    TransactionStart,
)
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import SourcePosition
from tests.support.batches import rows as encoded

Row = tuple[int | None, int | None]  # None: the image lacks the column
Table = dict[int, Row]
RowAct = tuple[str, int, int, int, bool]  # "set" | "delete" | "move", key, new key, value, whether the image is partial

NAME: Final = TableName("shop", "t")
LAYOUT: Final = TableLayout(NAME, (Column("id", "int"), Column("a", "int"), Column("b", "int")), (0,))


@dataclass(frozen=True)
class Change:
    """A change of a row, as its images tell it.

    Args:
        before: the key before; None: there was no row.
        after: the key after; None: there is none.
        row: the columns after.
        old: the columns before.
    """

    before: int | None
    after: int | None
    row: Row = (None, None)
    old: Row = (None, None)

    @property
    def partial(self) -> bool:
        return self.after is not None and None in self.row

    def applied(self, table: Table) -> None:
        """Change a table that has the row."""
        stored = self.old if self.before is None else table.pop(self.before)
        if self.after is not None:
            table[self.after] = completed(self.row, stored)


def completed(row: Row, stored: Row) -> Row:
    """A row, with the columns that the image lacks from the stored one."""
    return (stored[0] if row[0] is None else row[0], stored[1] if row[1] is None else row[1])


@dataclass(frozen=True)
class Sourced:
    """A transaction in the binary log.

    Args:
        number: of its GTID.
        changes: none: the filters leave it out.
        truncates: it is TRUNCATE TABLE instead.
        undo: the rows that it changed, as they were; None: there was none.
    """

    number: int
    changes: tuple[Change, ...]
    truncates: bool
    undo: dict[int, Row | None]


@dataclass
class Source:
    """The server that is the source now; the first rows of its table are those of the log's beginning."""

    rows: Table
    server: int = 1
    log: list[Sourced] = field(default_factory=list)
    flying: list[Sourced] = field(default_factory=list)  # in the binary log, and not visible
    states: dict[int, Table] = field(default_factory=dict)  # the table after each transaction; 0: at first
    next_number: int = 1
    meanwhile: deque[tuple[Any, ...]] = field(default_factory=deque)  # what happens while a round is opened

    def __post_init__(self) -> None:
        self.states[0] = dict(self.rows)

    @property
    def uuid(self) -> str:
        return f"server-{self.server}"

    @property
    def end(self) -> SourcePosition:
        """The end of the binary log."""
        return self.position(len(self.log))

    def position(self, index: int) -> SourcePosition:
        """Where the transaction of this index begins."""
        return SourcePosition("mysql-bin.000001", 4 + 100 * index)

    def act(self, kind: str, *arguments: Any) -> None:
        """Do what was drawn.

        Raises:
            SourceChanged: a round does not get its locks.
        """
        if kind == "execute":
            self.execute(*arguments)
        elif kind == "truncate":
            self._truncate()
        elif kind == "show" and self.flying:
            del self.flying[arguments[0] % len(self.flying)]
        elif kind == "refuse":
            raise SourceChanged("DDL is under way")

    def happens(self) -> None:
        """Something happens while a round is opened."""
        if self.meanwhile:
            self.act(*self.meanwhile.popleft())

    def execute(self, acts: Sequence[RowAct], visible: bool) -> None:
        """A transaction commits; its row locks are kept until it is visible."""
        table, changes, undo = dict(self.rows), [], {}
        for act in acts:
            change = _change(table, act)
            if change is not None:
                for key in (change.before, change.after):
                    if key is not None:
                        undo.setdefault(key, self.rows.get(key))
                change.applied(table)
                changes.append(change)
        self.show(one for one in self.flying if one.undo.keys() & undo.keys())
        self._log(Sourced(self.next_number, tuple(changes), False, undo), table, visible)

    def _truncate(self) -> None:
        self.show(self.flying)
        self._log(Sourced(self.next_number, (), True, dict(self.rows)), {}, True)

    def _log(self, transaction: Sourced, table: Table, visible: bool) -> None:
        self.log.append(transaction)
        self.next_number += 1
        self.rows = table
        self.states[transaction.number] = table
        if not visible:
            self.flying.append(transaction)

    def show(self, transactions: Iterable[Sourced]) -> None:
        """The engine commits them: views and `gtid_executed` have them."""
        shown = {one.number for one in transactions}
        self.flying = [one for one in self.flying if one.number not in shown]

    def view(self) -> Table:
        """What a consistent view that begins now shows."""
        table = dict(self.rows)
        for transaction in self.flying:
            for key, row in transaction.undo.items():
                table.pop(key, None)
                if row is not None:
                    table[key] = row
        return table

    def fail_over(self, lost: int) -> None:
        """A replica becomes the source, perhaps without the last transactions; it gives other GTIDs than these."""
        if lost:
            del self.log[-lost:]
        self.server += 1
        self.flying.clear()
        self.rows = self.states[self.log[-1].number if self.log else 0]

    def items(self, index: int) -> list[TransactionBatch | PositionAdvance]:
        """A transaction as the stream gives it: a batch for each change."""
        transaction, start, end = self.log[index], self.position(index), self.position(index + 1)
        gtid = str(transaction.number)
        if not (transaction.changes or transaction.truncates):
            return [PositionAdvance(end, gtid)]
        begin = TransactionStart(1, 7, gtid, 0, 0, start, Kind.DDL if transaction.truncates else Kind.TRANSACTION, {})
        ending = TransactionEnd(end, 1, Outcome.COMMIT)
        if transaction.truncates:
            return [TransactionBatch(begin, [Statement("shop", "TRUNCATE TABLE t")], ending)]
        last = len(transaction.changes) - 1
        return [
            TransactionBatch(None if number else begin, [_rows(change)], ending if number == last else None)
            for number, change in enumerate(transaction.changes)
        ]


def _change(table: Table, act: RowAct) -> Change | None:
    """The change of a table that an act comes to."""
    kind, key, new, value, partial = act
    old = table.get(key)
    if old is None:
        return None if kind == "delete" else Change(None, key, (value, value))
    if kind == "delete":
        return Change(key, None, old=old)
    after = new if kind == "move" and new not in table else key
    row: Row = (value, None) if partial else (value, old[1])
    return Change(key, after, row, old)


@cache
def _rows(change: Change) -> Rows:
    if change.before is None:
        return encoded(LAYOUT, Action.INSERT, (None, [change.after, *change.row]))
    if change.after is None:
        return encoded(LAYOUT, Action.DELETE, ([change.before, *change.old], None))
    if not change.partial:
        return encoded(LAYOUT, Action.UPDATE, ([change.before, *change.old], [change.after, *change.row]))
    moved = change.after != change.before
    image = [change.after, change.row[0]] if moved else [change.row[0]]
    return encoded(LAYOUT, Action.UPDATE, ([change.before], image), before=b"\1", after=b"\3" if moved else b"\2")
