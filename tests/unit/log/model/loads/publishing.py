"""Publishing to the model's Kafka: events, and with them the position and how far loads are."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from connector.log.epochs.loads import TableLoad
from connector.log.ids import NO_SEQNO, Action, Kind
from connector.log.transaction.batch import PositionAdvance, TransactionBatch
from connector.log.transaction.load import LoadEvent
from tests.unit.log.model.loads.rounds import decoded, decoded_keys
from tests.unit.log.model.loads.source import Change, Row, Source
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, POSITION, Session


class Killed(BaseException):
    """The producer's process is gone."""


@dataclass(frozen=True)
class Event:
    """An event of the log: a transaction of the source, or an event of a load."""

    seqno: int
    number: int = 0
    changes: tuple[Change, ...] = ()
    truncates: bool = False
    load: LoadEvent | None = None
    rows: Sequence[tuple[int, Row]] = ()
    gone: Sequence[int] = ()


@dataclass(frozen=True)
class Position:
    """What the log has: the last event, and the transactions."""

    seqno: int = NO_SEQNO
    numbers: frozenset[int] = frozenset()


def consumed(source: Source, numbers: frozenset[int]) -> int:
    """The index of the first transaction that a log lacks."""
    return sum(one.number in numbers for one in source.log)


@dataclass
class Encoder:
    """Makes an event of batches."""

    source: Source
    next_seqno: int
    number: int | None = None  # of the transaction whose event is open
    repair: LoadEvent | None = None  # whose event is open
    changes: list[Any] = field(default_factory=list)  # of it

    @property
    def open(self) -> bool:
        return self.number is not None or self.repair is not None

    def encode(self, batch: TransactionBatch) -> list[Event]:
        """Return the event, once it is whole."""
        begin = batch.begin
        if begin is not None and begin.kind is Kind.LOAD and batch.ending is None:
            self.repair = LoadEvent.of(begin.metadata)
        if self.repair is not None:
            self.changes += batch.changes
            if batch.ending is None:
                return []
            rows = [row for change in self.changes if change.action is Action.READ for row in decoded(change)]
            gone = [key for change in self.changes if change.action is Action.DELETE for key in decoded_keys(change)]
            event = Event(self.next_seqno, load=self.repair, rows=rows, gone=gone)
            self.repair, self.changes = None, []
        elif begin is not None and begin.kind is Kind.LOAD:
            rows = [row for change in batch.changes if hasattr(change, "data") for row in decoded(change)]
            event = Event(self.next_seqno, load=LoadEvent.of(begin.metadata), rows=rows)
        else:
            if begin is not None:
                self.number = int(begin.gtid or 0)
            if batch.ending is None:
                return []
            transaction = next(one for one in self.source.log if one.number == self.number)
            event = Event(self.next_seqno, transaction.number, transaction.changes, transaction.truncates)
            self.number = None
        self.next_seqno += 1
        return [event]


@dataclass
class Publisher:
    """Writes to Kafka, in order, some works a transaction."""

    keeps_the_order = True
    newest_commit = None

    session: Session
    source: Source
    position: Position
    every: int
    lives: int | None = None  # records until it is killed
    queue: deque[Sequence[Any]] = field(default_factory=deque)

    def put(self, work: Sequence[Any]) -> None:
        if work:
            self.queue.append(work)
        if not self.keeps_the_order:
            self._commit_states_first()
            return
        while len(self.queue) >= self.every:
            self._commit()

    def drain(self) -> SimpleNamespace:
        """Commit everything."""
        while self.queue:
            self._commit()
        numbers = self.position.numbers
        return SimpleNamespace(gtid_set=numbers, resume=self.source.position(consumed(self.source, numbers)))

    def resume(self) -> None:
        """Go on."""

    def _commit_states_first(self) -> None:
        states = [one for work in self.queue for one in work if isinstance(one, TableLoad)]
        self.queue = deque([one for one in work if not isinstance(one, TableLoad)] for work in self.queue)
        for one in states:
            self._send(CONTROL, (("load", one.table), one))
        if states:
            self.session.commit()

    def _commit(self) -> None:
        seqno, numbers = self.position.seqno, set(self.position.numbers)
        works = [self.queue.popleft() for _ in range(min(self.every, len(self.queue)))]
        for one in (one for work in works for one in work):
            if isinstance(one, Event):
                self._send(EVENTS, one)
                seqno = one.seqno
                if one.number:
                    numbers.add(one.number)
            elif isinstance(one, PositionAdvance):
                numbers.add(int(one.gtid or 0))
            else:
                self._send(CONTROL, (("load" if isinstance(one, TableLoad) else "request", one.table), one))
        position = Position(seqno, frozenset(numbers))
        self._send(POSITION, ("position", position))
        self.session.commit()
        self.position = position

    def _send(self, topic: str, value: Any) -> None:
        if self.lives is not None:
            self.lives -= 1
            if self.lives < 0:
                raise Killed
        self.session.send(topic, 0, value)
