"""An applier. Between any two calls, and any two steps of a commit, it may be killed, or be overtaken by another.

An applier may leave events out (`--skip-seqno`), or take the target's position back first (`--from-seqno`): then it
applies again what is there already, and writes over it. It may have several writers (`target.writers`) and a relay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from connector.errors import BrokerUnavailable, LogDamaged
from connector.log.epochs.history import History, check_before, check_offsets
from connector.log.ids import NO_SEQNO, LogId, Seqno
from connector.log.reading.retained import Retained, retained
from connector.log.transaction.position import PositionRecord, TargetPosition
from connector.log.writing.tail import TailFound
from tests.unit.log.model.simulation.commit import Commit, position_after
from tests.unit.log.model.simulation.going_back import GoingBack
from tests.unit.log.model.simulation.kafka import EVENTS, Kafka, Partition
from tests.unit.log.model.simulation.log_reading import LogReading
from tests.unit.log.model.simulation.log_state import read_control, read_position
from tests.unit.log.model.simulation.relay import Relay
from tests.unit.log.model.simulation.target import Target


class Applier:
    """`thl apply`, one run.

    Args:
        skips: events to leave out.
        first: take the position back to before this event; None: leave it.
        undo: take the data back, too, to after this event (`thl undo`); None: leave them.
        writers: into so many transactions a commit is divided.
        relay: gets what is applied before the target does.

    Raises:
        TargetUnavailable: writers of an older applier are about to commit.
    """

    passes_what_is_left_out = True  # with its position
    makes_whole_exactly = True  # an intent, with all of its events and no others
    makes_whole_first = True  # before its options count

    def __init__(
        self,
        kafka: Kafka,
        target: Target,
        *,
        skips: Collection[int] = (),
        first: Seqno | None = None,
        undo: Seqno | None = None,
        writers: int = 1,
        relay: Relay | None = None,
    ) -> None:
        self._kafka, self.target, self.writers, self.relay = kafka, target, writers, relay
        self.token, self._position = target.claim()
        self._options: dict[str, Any] = {
            "skips": skips,
            "first": first,
            "undo": undo,
            "writers": writers,
            "relay": relay,
        }
        self.making_whole = self._position.intent is not None
        if self.making_whole and self.makes_whole_first:
            skips, first, undo = (), None, None
        self._begins: Mapping[int, int] = {}  # partition → the first offset to read, where retention deleted others
        self.done = False  # an earlier applier's commit is whole
        self._skips, self._first, self._undo = frozenset(skips), first, undo
        self._log_id = LogId("")
        self._reading: LogReading | None = None
        self._commit: Commit | None = None
        self._steps: Iterator[str] = iter(())
        self.busy = False  # within a commit

    @property
    def position(self) -> TargetPosition:
        """The target's, as it goes on from it."""
        return self._position

    @property
    def goes_back(self) -> bool:
        """True if it was started to apply events again, or to undo some: it needs earlier ones."""
        return self._options["first"] is not None or self._options["undo"] is not None

    def next(self) -> Applier:
        """The next attempt, once a commit is whole."""
        return Applier(self._kafka, self.target, **self._options)

    def die(self) -> None:
        """The server rolls back what is open."""
        if self._commit is not None:
            self._commit.roll_back()

    def read(self, number: int, most: int) -> int:
        """See `LogReading.read`."""
        return self._opened().read(number, most)

    def read_together(self, most: int) -> int:
        """See `LogReading.read_together`."""
        return self._opened().read_together(most)

    def _opened(self) -> LogReading:
        if self._reading is None:
            self._reading = self._handshake()
        return self._reading

    def _handshake(self) -> LogReading:
        """Prove that the target lies on the log's history; after the claim, so that nothing can be older."""
        if self._first is not None:
            first, self._first = self._first, None
            self._position = self._going_back().rewind(self._position, first)
        if self._undo is not None:
            to, self._undo = self._undo, None
            self._position = self._going_back().undo(self._position, to)
        history = self._agreed()
        self._log_id = history.log_id
        reading = LogReading(self._kafka, history, self._position, self._skips, self._begins)
        if self.relay is not None:
            self.relay.begin(self._position, history)
        return reading

    def _going_back(self) -> GoingBack:
        return GoingBack(self._kafka, self._agreed(), self.target, self.token)

    def _agreed(self) -> History:
        kafka, at = self._kafka, self._position
        record = read_position(kafka)
        control = read_control(kafka)
        if record is None or control.log is None:
            raise LogDamaged("There is no log yet")
        topic = kafka.topics[EVENTS]
        starts = {p.number: p.start for p in topic}
        history = History.of(control, record.last_finished)
        left = {
            p.number: self._retained(p, history, record)
            for p in topic
            if p.start and p.before(at.offsets.get(p.number, 0)) is None
        }
        incomplete = {number: one.incomplete for number, one in left.items()}
        history.prove_target(at, from_first=all(seqno == NO_SEQNO for seqno in incomplete.values()))
        unfinished = [number for number, one in left.items() if one.unfinished]
        check_offsets(at, starts, {p.number: p.end for p in topic}, incomplete, unfinished)
        check_before(at, {p.number: _tail_before(p, at.offsets.get(p.number, 0)) for p in topic})
        self._begins = {number: one.offset for number, one in left.items()}
        return history

    def _retained(self, partition: Partition, history: History, record: PositionRecord) -> Retained:
        readable = partition.read(partition.start, len(partition.readable))
        if not readable and partition.stable() < partition.end:
            raise BrokerUnavailable("messages are not decided yet: they are waited for")
        messages = ((entry.offset, entry.value[0]) for entry in readable)
        return retained(messages, partition.number, partition.end, history, record)

    def commit(self, most: int | None = None, steps: int | None = None) -> None:
        """Make what is complete, or the first of it, visible with the position.

        Args:
            most: of the events.
            steps: of the commit, at each of which something may happen; None: all.
        """
        if not self.busy and self._reading is not None:
            self._begin_commit(self._reading, most)
        while self.busy and steps != 0:
            self.busy = next(self._steps, None) is not None
            if self._commit is not None and self._commit.whole:
                self._committed(self._commit.after)
            steps = steps and steps - 1

    def _begin_commit(self, reading: LogReading, most: int | None) -> None:
        intent = self._position.intent if self.makes_whole_exactly else None
        ready = reading.ready
        if intent is not None:
            most = sum(event.seqno <= intent.last for event, _ in ready)
            if not most or ready[most - 1][0].seqno < intent.last:
                return
        while most and most < len(ready) and ready[most - 1][0].seqno not in reading.ends:
            most += 1
        events, reading.ready = ready[:most], ready[len(ready[:most]) :]
        kept = [event for event in events if event[0].seqno not in self._skips]
        if not (events if self.passes_what_is_left_out else kept):
            return
        last = (events if self.passes_what_is_left_out else kept)[-1]
        out = [event.seqno for event, _ in events if event.seqno in self._skips]
        after = position_after(self._position, self._log_id, last, reading.resumable(last[0].seqno))
        self._commit = self._commit_to(after)
        self._steps, self.busy = self._commit.steps(kept, out), True

    def _commit_to(self, after: TargetPosition) -> Commit:
        return Commit(self.target, self.token, at=self._position, after=after, writers=self.writers, relay=self.relay)

    def _committed(self, position: TargetPosition) -> None:
        self._position, self.done = position, self.making_whole
        if self._reading is not None:
            self._reading.position = position

    def from_relay(self, *, kafka_answers: bool) -> Iterator[str]:
        """Make the target's intent whole without Kafka, and nothing else."""
        if self._position.intent is None or kafka_answers:
            return
        if self.relay is None:
            raise BrokerUnavailable("there is no relay")
        records = self.relay.needed(self._position)
        last, offsets = records[-1], dict(self._position.offsets)
        after = position_after(self._position, records[0].log_id, (last.event, last.event_id), offsets)
        self._commit = self._commit_to(after)
        yield from self._commit.divided([record.event for record in records])
        self.target.commit(self.token, [], after)
        self._committed(after)


def _tail_before(partition: Partition, offset: int) -> Seqno:
    newest = partition.before(offset)
    return TailFound.of(newest and newest.value[0], start=partition.start, end=partition.end).seqno
