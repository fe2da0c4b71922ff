"""A producer, as far as loads rest on it: `TableLoads` itself, the stream, and a publisher to the model's Kafka.

It may be killed at each record that it writes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count
from threading import Event as Flag
from types import SimpleNamespace
from typing import Any, Final

from connector.errors import HistoriesDiffer
from connector.log.epochs.control import ControlState, EpochRecord
from connector.log.epochs.fork import Forked, overlaps, ranges_of
from connector.log.epochs.loads import LoadRequest, TableLoad
from connector.log.transaction.batch import TransactionBatch
from connector.producer.loads.loads import TableLoads
from tests.unit.log.model.loads.publishing import Encoder, Position, Publisher, consumed
from tests.unit.log.model.loads.rounds import Round
from tests.unit.log.model.loads.source import Source
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, POSITION, Kafka, Session, Transaction

TICKS: Final = count()
NEVER: Final = Flag()


@dataclass(frozen=True)
class Settings:
    """The configuration of a producer.

    Args:
        every: records of a Kafka transaction.
        reads: what the stream gives at a time.
        brief: rounds take a lock.
        chunks, chunk_rows: of a round.
    """

    every: int
    reads: int
    brief: bool
    chunks: int
    chunk_rows: int


def read_control(kafka: Kafka) -> ControlState:
    """The control topic."""
    records: dict[Any, Any] = dict(kafka.read_whole(CONTROL))
    epochs = sorted((one for one in records.values() if isinstance(one, EpochRecord)), key=lambda one: one.epoch)
    requests = {one.table: one for one in records.values() if isinstance(one, LoadRequest)}
    loads = {one.table: one for one in records.values() if isinstance(one, TableLoad)}
    return ControlState(None, None, tuple(epochs), load_requests=requests, loads=loads)


class Producer:
    """`thl produce --accept-trapped`, one run.

    Args:
        kafka: has the log.
        source: is published.
        settings: the configuration.
    """

    traps_what_loads_read = True

    def __init__(self, kafka: Kafka, source: Source, settings: Settings) -> None:
        self._kafka, self._source, self._settings = kafka, source, settings
        session = kafka.init_transactions()
        positions = kafka.read_whole(POSITION)
        control, position = self._begin_epoch(
            session, read_control(kafka), positions[-1][1] if positions else Position()
        )
        self._server, self.broken = source.server, False
        self._read: deque[Any] = deque()
        self._index = consumed(source, position.numbers)
        self._heard = kafka.partition(CONTROL).end
        self.publisher = Publisher(session, source, position, settings.every)
        self.loads = TableLoads(_config(settings), _source(self._round), _Clock(), NEVER)
        self.online: Any = SimpleNamespace(
            encoder=Encoder(source, position.seqno + 1),
            publisher=self.publisher,
            control=control,
            put=self.publisher.put,
            read_again=lambda _: False,
        )
        self.loads.restore(control)

    def _begin_epoch(
        self, session: Session, control: ControlState, position: Position
    ) -> tuple[ControlState, Position]:
        """Write the epoch, and what it goes on without."""
        gone, forked = position.numbers - {one.number for one in self._source.log}, None
        if gone:
            events = [
                one for one in self._kafka.read_whole(EVENTS) if not overlaps(control.trapped, one.seqno, one.seqno)
            ]
            trapped = [one.seqno for one in events if one.number in gone]
            first = min(trapped, default=position.seqno)
            if self.traps_what_loads_read:
                trapped += [one.seqno for one in events if one.load is not None and one.seqno > first]
            forked = Forked(str(sorted(gone)), ranges_of(trapped))
            position = Position(position.seqno, position.numbers - gone)
        epoch = EpochRecord(
            epoch=len(control.epochs) + 1,  # type: ignore[arg-type]
            first_seqno=position.seqno + 1,  # type: ignore[arg-type]
            source_id="db1:3306",
            server_uuid=self._source.uuid,
            started=0,
            reason="forked" if forked else "online",
            forked=forked,
        )
        session.send(CONTROL, 0, (epoch.epoch, epoch))
        session.send(POSITION, 0, ("position", position))
        session.commit()
        self._kafka.tell_all()
        return ControlState(
            None, None, (*control.epochs, epoch), load_requests=control.load_requests, loads=control.loads
        ), position

    @property
    def idle(self) -> bool:
        """There is nothing to publish, and nothing to load."""
        self._kafka.tell_all()
        self._hear()
        loads = self.loads._received or self.loads.known.outstanding()
        return not (loads or self._read or self._index < len(self._source.log) or self.publisher.queue)

    def step(self) -> None:
        """One turn of a producer that is online.

        Raises:
            Fenced: a newer producer has begun.
            HistoriesDiffer: another server is the source, and lacks transactions of the log.
            Killed: it was.
        """
        self._hear()
        self.loads.advance(self.online)
        items, later = self.loads.split_at_position(self._stream())
        for item in items:
            if isinstance(item, TransactionBatch):
                self.publisher.put(self.online.encoder.encode(item))
            else:
                self.publisher.put([item])
        self._read.extendleft(reversed(later))
        if not items and not later:
            self.publisher.drain()  # as the timer of an idle publisher does

    def _hear(self) -> None:
        for entry in self._kafka.partition(CONTROL).read(self._heard, 100):
            self._heard = entry.offset + 1
            if isinstance(entry.value[1], LoadRequest):
                self.loads.accept(entry.value[1])

    def _stream(self) -> list[Any]:
        if self.broken or self._server != self._source.server:
            self._go_back()
        while len(self._read) < self._settings.reads and self._index < len(self._source.log):
            self._read.extend(self._source.items(self._index))
            self._index += 1
        return [self._read.popleft() for _ in range(min(self._settings.reads, len(self._read)))]

    def _go_back(self) -> None:
        """The stream broke: what is whole is published, and the stream goes on there, perhaps on another server."""
        publisher, online = self.publisher, self.online
        self.loads.abandon()
        publisher.drain()
        if publisher.position.numbers - {one.number for one in self._source.log}:
            raise HistoriesDiffer("the source lacks transactions of the log")
        online.encoder.number = online.encoder.repair = None
        online.encoder.changes = []
        self._read.clear()
        self._index = consumed(self._source, publisher.position.numbers)
        if self._server != self._source.server:
            online.control, _ = self._begin_epoch(publisher.session, online.control, publisher.position)
        self._server, self.broken = self._source.server, False

    def _round(self, after: Any, keys: Any, *, lock: bool) -> Round:
        settings = self._settings
        return Round(self._source, after, keys, lock=lock, chunks=settings.chunks, chunk_rows=settings.chunk_rows)


def _source(opens: Any) -> Any:
    """A source that never asks a load to wait: rounds that do not get their locks do."""
    return SimpleNamespace(round=opens, load_pause=lambda *_: None)


class _Clock:
    """A second passes at each look."""

    def now(self) -> int:
        return next(TICKS)

    def monotonic(self) -> float:
        return float(next(TICKS))


def _config(settings: Settings) -> Any:
    snapshot = SimpleNamespace(lock="brief" if settings.brief else "none", max_rows_per_second=None)
    return SimpleNamespace(service="shop", source=SimpleNamespace(snapshot=snapshot, semi_sync=False))


def ask(kafka: Kafka, request: LoadRequest) -> bool:
    """A command writes a request; False: Kafka is busy."""
    partition = kafka.partition(CONTROL)
    if partition.undecided:
        return False
    transaction = Transaction(None, "commit")  # type: ignore[arg-type]
    partition.append(transaction, (("request", request.table), request))
    partition.append(transaction, marker=True)
    return True
