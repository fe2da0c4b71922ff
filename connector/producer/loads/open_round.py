"""A round of loads until the stream has reached its position: what the stream changes meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from connector.errors import Unsupported
from connector.log.compact.row_keys import keys
from connector.log.ids import Action, Kind
from connector.log.transaction.batch import PositionAdvance, Rows, Statement, TransactionBatch
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.statement_options import SAVEPOINTS
from connector.log.transaction.xa import Decided, Prepared, end_of
from connector.producer.sources.source import Round


@dataclass(slots=True)
class OpenRound:
    """A round whose position the stream has not reached.

    Args:
        round: the round.
        loads: the load of each table that the round is for.
        seen: the end of what the stream has given.
        changed: keys that the stream has changed since the round was opened, by the table's published name; None: the
            round's table has no primary key, whatever key the stream finds its rows by.
        spoiled: published names of tables whose rows are of no use.
        all_spoiled: none are of use.
        repaired: those tables of which it reads some keys alone.
    """

    round: Round
    loads: Mapping[TableName, str]
    seen: SourcePosition
    changed: dict[TableName, set[bytes] | None] = field(default_factory=dict)
    spoiled: set[TableName] = field(default_factory=set)
    all_spoiled: bool = False
    repaired: Collection[TableName] = ()

    @property
    def reached(self) -> bool:
        """True once the stream has given everything before the round's position."""
        return self.seen >= self.round.position

    def note(self, item: Item) -> None:
        """Note what the stream changes."""
        match item:
            case Redefined():
                self.all_spoiled = True
                return
            case TransactionBatch():
                for change in item.changes:
                    self._note_change(change)
                if item.begin is not None and item.begin.kind is Kind.DDL:
                    self.all_spoiled = True
            case Prepared(one_phase=True) | Decided():
                self.all_spoiled = True
            case Prepared():
                pass  # changes nothing before it is decided
            case PositionAdvance():
                pass
        self.seen = end_of(item) or self.seen

    def _note_change(self, change: Rows | Statement) -> None:
        if isinstance(change, Statement):
            self.all_spoiled = self.all_spoiled or not change.sql.startswith(SAVEPOINTS)
            return
        name = change.layout.name
        if name not in self.changed:
            return
        noted = self.changed[name]
        if noted is None or not change.layout.key or (change.action is Action.UPDATE and change.after):
            self.spoiled.add(name)
            return
        try:
            noted |= keys(change)
        except Unsupported:  # the image of an INSERT that left the key to its default
            self.spoiled.add(name)
