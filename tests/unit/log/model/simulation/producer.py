"""A producer: one generator, whose every `yield` is a moment where it may be paused, killed or fenced."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from connector.errors import ConnectorError, LogDamaged, Unsupported
from connector.kafka.prepared_records import (
    attempt_tombstones,
    closing_record,
    message_key,
    tombstones,
)
from connector.log.gtid.mysql import GtidSet
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.pending import Pending, Stored
from connector.log.transaction.position import PositionRecord
from connector.log.writing import online
from connector.log.writing.progress import Progress
from tests.unit.log.model.simulation.event_fragments import EventFragments, Settings
from tests.unit.log.model.simulation.going_online import GoingOnline, Steps
from tests.unit.log.model.simulation.kafka import EVENTS, POSITION, PREPARED, Kafka
from tests.unit.log.model.simulation.log_state import read_control, read_position, read_prepared, read_tails
from tests.unit.log.model.simulation.source import Source, Sourced


def _encoded(piece: tuple[int, int, int]) -> bytes:
    return b"%d %d %d" % piece


def _decoded(piece: bytes) -> tuple[int, ...]:
    return tuple(map(int, piece.split()))


class Producer:
    """`thl produce`, one run.

    Args:
        kafka: has the log, once there is one.
        source: is published.
        settings: the configuration.
    """

    one_transaction = True  # events and position
    keeps_in_one = True  # what is prepared, and the position that is past it
    takes_away_in_one = True  # what was prepared, and the event that it has become
    confirms = True  # that it is not fenced, before it says that the log is damaged
    acknowledges_what_is_committed = True
    acknowledges_whole_events = True
    compares_server = True  # before it acknowledges a place in a file of it

    def __init__(self, kafka: Kafka, source: Source, settings: Settings) -> None:
        self._kafka, self._source, self._settings = kafka, source, settings
        self._steps = self._run()
        self.stream_broke = False
        self.idle = False
        self._attempts = 0
        self._strays: list[bytes] = []
        self.doing = "nothing"
        self.session = 0

    def step(self) -> None:
        """Go on to the next moment where something may happen to it."""
        self.doing = next(self._steps)
        self.idle = self.doing == "idle"

    def _run(self) -> Steps:
        kafka = self._kafka
        self._session = kafka.init_transactions()
        self.session = self._session.number
        self._online = GoingOnline(kafka, self._session, self._source, self._settings)
        yield "fenced the older one"
        control = read_control(kafka)
        yield "read control"
        position = read_position(kafka)
        yield "read position"
        tails = read_tails(kafka)
        yield "read tails"
        with self._still_ours():
            kept = read_prepared(kafka)
        yield "read what is prepared"
        with self._still_ours():
            plan = self._online.decide(control, position, tails, kept)
        self._pending, self._strays = kept.pending, list(kept.strays)
        yield "decided"
        yield from self._go(plan)
        while True:
            try:
                yield from self._publish()
            except ConnectionResetError:
                yield from self._reconnect()

    @contextmanager
    def _still_ours(self) -> Iterator[None]:
        """What looks like damage may be the work of a newer producer, between two of our reads: that is told first."""
        try:
            yield
        except ConnectorError:
            if self.confirms:
                self._session.confirm()
            raise

    def _go(self, plan: online.OnlinePlan) -> Steps:
        yield from self._online.write(plan)
        self._plan, self._committed = plan, plan.position
        self._fragments = EventFragments(plan.epoch.epoch, plan.control.partitions, self._settings)
        self._progress = Progress(plan.position, self._source.server_uuid)
        yield "online"

    def _reconnect(self) -> Steps:
        """The source's stream broke: begin again where Kafka says."""
        self._session.abort()
        yield "aborted"
        self._kafka.tell_all()
        control, position = self._plan.control, self._committed
        with self._still_ours():
            kept = read_prepared(self._kafka)
            plan = self._online.go_back(control, position, kept)
        self._pending, self._strays = kept.pending, list(kept.strays)
        if position.open is None:
            self._progress = Progress(position, self._source.server_uuid)
        else:
            yield from self._go(plan)

    def _listen(self) -> None:
        if self.stream_broke:
            self.stream_broke = False
            raise ConnectionResetError

    def _publish(self) -> Steps:
        """What follows the position, transaction after transaction: until the stream breaks, the log only grows."""
        position = self._progress.record()
        log, at = self._source.log, self._source.index_after(GtidSet.parse(position.gtid_set or ""))
        self._read, uncommitted = position.resume, 0
        while True:
            self._listen()
            transaction = log[at] if at < len(log) else None
            if transaction is not None:
                self._read, at = transaction.end, at + 1
            if transaction is not None and transaction.xid:
                if uncommitted:
                    yield from self._commit()
                    uncommitted = 0
                yield from self._prepare(transaction) if transaction.does == "prepare" else self._decided(transaction)
                continue
            if transaction is None or transaction.filtered:
                if transaction is not None:
                    self._progress.passed(PositionAdvance(transaction.end, transaction.gtid))
                if uncommitted or transaction is not None:
                    yield from self._commit()
                    uncommitted = 0
                else:
                    yield "idle"
                continue
            uncommitted = yield from self._event(transaction, transaction.pieces, uncommitted)

    def _event(
        self, transaction: Sourced, pieces: Sequence[Any], uncommitted: int, gone: Sequence[Stored] = ()
    ) -> Generator[str, None, int]:
        """The fragments of an event; with the last goes what was kept of it."""
        position, seqno = self._progress.record(), self._progress.next_seqno
        for fragment, value in self._fragments.of(transaction, pieces, position, seqno):
            self._listen()
            if fragment.finished and gone and not self.takes_away_in_one:
                self._keep(gone)
                yield from self._commit()
            self._session.send(EVENTS, fragment.partition, value)
            self._progress.accept(fragment)
            if fragment.finished and self.takes_away_in_one:
                self._keep(gone)
            # The timer of an idle tail fires with what was seen last, whatever it is.
            self._progress.passed(PositionAdvance(transaction.end, transaction.gtid))
            uncommitted += 1
            yield f"wrote {fragment.seqno}/{fragment.fragno}"
            if uncommitted >= self._settings.every:
                yield from self._commit()
                uncommitted = 0
        return uncommitted

    def _keep(self, records: Sequence[Stored]) -> None:
        for stored in records:
            self._session.send(PREPARED, 0, (stored.key, stored.value))
            if stored.kept is not None:
                self._progress.keep(stored.kept)

    def _prepare(self, transaction: Sourced) -> Steps:
        """Keep a prepared transaction, in pieces; with the closing record the position is past it."""
        self._keep([Stored(key, None) for key in self._strays])
        self._strays = []
        self._attempts += 1
        attempt = f"{self._plan.epoch.epoch}.{self._attempts}"
        pieces = [] if transaction.filtered else transaction.pieces
        for number, piece in enumerate(pieces):
            self._listen()
            key = message_key(attempt, number)
            self._keep([Stored(key, _encoded(piece))])
            self._strays.append(key)  # until it is whole
            yield f"kept {transaction.xid}/{number}"
            if (number + 1) % self._settings.every == 0:
                yield from self._commit()
        self._strays = []
        pending = Pending(
            xid=transaction.xid,
            attempt=attempt,
            batches=len(pieces),
            messages=len(pieces),
            gtid=transaction.gtid,
            start=transaction.start,
            time=0,
        )
        replaced = self._pending.prepare(pending)
        self._keep(attempt_tombstones(replaced.attempt, replaced.messages) if replaced else [])
        passed = PositionAdvance(transaction.end, transaction.gtid)
        if not self.keeps_in_one:
            self._progress.passed(passed)
            yield from self._commit()
        self._keep([closing_record(pending, self._pending.kept)])
        self._progress.passed(passed)
        yield f"kept {transaction.xid}"
        yield from self._commit()

    def _decided(self, transaction: Sourced) -> Steps:
        """Make an event of what is kept, or drop it."""
        pending = self._pending.end(transaction.xid)
        if pending is None:
            raise Unsupported("committed, and never prepared", xid=transaction.xid)
        gone = tombstones(pending, self._pending.kept)
        if transaction.does == "rollback" or not pending.batches:
            self._keep(gone)
            self._progress.passed(PositionAdvance(transaction.end, transaction.gtid))
            yield f"dropped {transaction.xid}"
            yield from self._commit()
            return
        self._kafka.tell_all()  # read back is what is decided: the reader waits
        values = dict(self._kafka.read_whole(PREPARED))
        pieces = [values.get(message_key(pending.attempt, number)) for number in range(pending.messages)]
        with self._still_ours():
            if None in pieces:
                raise LogDamaged("a piece is missing", xid=transaction.xid)
        yield "read back"
        uncommitted = yield from self._event(transaction, [_decoded(piece) for piece in pieces], 0, gone)
        if uncommitted:
            yield from self._commit()

    def _commit(self) -> Steps:
        position = self._progress.record()
        if not self.one_transaction:
            self._session.commit()
            yield "committed the events alone"
        self._session.send(POSITION, 0, ("position", position))
        yield "wrote the position"
        if not self.acknowledges_what_is_committed:
            self._acknowledge(position)
            yield "acknowledged"
        self._session.commit()
        self._committed = position
        yield "committed"
        self._acknowledge(position)

    def _acknowledge(self, position: PositionRecord) -> None:
        """Tell the source, as its semi-synchronous replica, what Kafka has."""
        ours = position.server_uuid == self._source.server_uuid  # not of the server that it has replaced
        if not self.stream_broke and (ours or not self.compares_server):
            seen = position.resume if self.acknowledges_whole_events else self._read
            self._source.acknowledge(self._session.saw_source, seen)
