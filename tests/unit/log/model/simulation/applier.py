"""An applier and its target. Between any two calls the applier may be killed, or be overtaken by another.

An applier may leave events out (`--skip-seqno`), or take the target's position back first (`--from-seqno`): then it
applies again what is there already, and writes over it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from connector.errors import Fenced, LogDamaged
from connector.log.epochs.history import History, check_before, check_offsets
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, Seqno
from connector.log.reading import search as seek
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided
from connector.log.transaction.position import TargetPosition
from connector.log.writing.tail import TailFound
from tests.unit.log.model.ranges import Message, accept_in_ranges, accept_together
from tests.unit.log.model.simulation.kafka import EVENTS, Kafka, Partition
from tests.unit.log.model.simulation.producer import read_control, read_position


@dataclass(frozen=True)
class Applied:
    """An event that is visible on a target."""

    seqno: int
    epoch: int
    pieces: tuple[Any, ...]


@dataclass
class Target:
    """A database: rows and position change together, under the newest token.

    Args:
        rows: the events, in order of their seqnos.
        lacks: the events up to its position, or head, that were left out.
        reached: the newest epoch that it has met, also where its position was taken back to an older one.
    """

    position: TargetPosition = field(default_factory=lambda: TargetPosition(service="shop"))
    rows: list[Applied] = field(default_factory=list)
    lacks: set[int] = field(default_factory=set)
    reached: Epoch = NO_EPOCH
    token: int = 0
    writers: list[int] = field(default_factory=list)  # the token of each commit
    checks_token: bool = True
    commits_at_once: bool = True
    finds_what_is_there: bool = True  # when it applies again
    _late: TargetPosition = field(default_factory=lambda: TargetPosition(service="shop"))

    @property
    def upto(self) -> int:
        """The last event that it holds."""
        return max(self.position.seqno, self.position.rewound_from)

    def claim(self) -> tuple[int, TargetPosition]:
        self.token += 1
        return self.token, self.position

    def commit(
        self, token: int, events: list[Applied], position: TargetPosition, left_out: Collection[int] = ()
    ) -> None:
        if self.checks_token and token != self.token:
            raise Fenced("A newer applier has claimed the target", token=token)
        self.writers.append(token)
        if self.finds_what_is_there and self.position.rewound_from != NO_SEQNO:
            again = {event.seqno for event in events}
            self.rows = sorted([row for row in self.rows if row.seqno not in again] + events, key=lambda row: row.seqno)
        else:
            self.rows += events
        held = {row.seqno for row in self.rows}
        self.lacks = (self.lacks | set(left_out)) - held
        self.reached = max(self.reached, position.epoch)
        if self.commits_at_once:
            self.position = position
        else:  # the position of this commit comes with the next one, too late for a crash between them
            self.position, self._late = self._late, position


class Applier:
    """`thl apply`, one run.

    Args:
        skips: events to leave out.
        first: take the position back to before this event; None: leave it.
    """

    keeps_the_head = True  # of what is taken back, until it is there again
    takes_its_offsets_back = True
    takes_its_epoch_back = True
    passes_what_is_left_out = True  # with its position
    notes_what_is_left_out = True  # in the same commit

    def __init__(
        self, kafka: Kafka, target: Target, *, skips: Collection[int] = (), first: Seqno | None = None
    ) -> None:
        self._kafka, self.target = kafka, target
        self.token, self._position = target.claim()
        self._skips, self._first = frozenset(skips), first
        self._log_id = ""
        self._ledger: EventSequencer[Any, Any] | None = None
        self._next: dict[int, int] = {}
        self._parts: list[Any] = []
        self._ready: list[tuple[Applied, str]] = []

    def rewind(self, history: History, first: Seqno) -> None:
        """Take the position back, once it is shown that everything up to the head is there to be applied again."""
        first = history.beginning(first)
        if not first:  # event 0 has no event before it, whose epoch could be told
            return
        at, before = self._position, Seqno(first - 1)
        covering = history.covering(before)
        taken_back = replace(
            at,
            seqno=before,
            epoch=covering.epoch if self.takes_its_epoch_back else at.epoch,
            event_id="",
            offsets=self._offsets_of(first) if self.takes_its_offsets_back else at.offsets,
            consistent=False,
            rewound_from=max(at.rewound_from, at.seqno) if self.keeps_the_head else NO_SEQNO,
        )
        self._rehearse(history, taken_back)
        self.target.commit(self.token, [], taken_back)
        self._position = taken_back

    def _offsets_of(self, first: Seqno) -> dict[int, int]:
        found: dict[int, seek.Probe[FragmentHeader] | None] = {}
        topic = [self._kafka.settled(EVENTS, partition.number) for partition in self._kafka.topics[EVENTS]]
        for partition in topic:

            def read(offset: int, partition: Partition = partition) -> seek.Probe[FragmentHeader] | None:
                return next((seek.Probe(entry.offset, entry.value[0]) for entry in partition.read(offset, 1)), None)

            found[partition.number] = seek.first_of(read, partition.start, partition.end, first)
        if first not in [met.header.seqno for met in found.values() if met]:
            raise LogDamaged("the log has no such event any more", seqno=first)
        ends = {partition.number: partition.end for partition in topic}
        return {number: met.offset if met else ends[number] for number, met in found.items()}

    def _rehearse(self, history: History, position: TargetPosition) -> None:
        topic = self._kafka.topics[EVENTS]
        ledger: EventSequencer[Any, Any] = EventSequencer(
            topic="thl.shop", partitions=len(topic), position=position, history=history
        )
        done = position.seqno
        for partition in topic:
            for offset, (header, piece) in self._kafka.fetch(
                EVENTS, partition.number, position.offsets.get(partition.number, 0), partition.end
            ):
                ledger.accept(header, partition.number, offset, piece)
        for item in ledger.release():
            if isinstance(item, Release) and item.complete:
                done = item.seqno
        if done < position.rewound_from:
            raise LogDamaged("the log ends before what the target has", seqno=position.rewound_from)

    def handshake(self) -> None:
        """Prove that the target lies on the log's history; after the claim, so that nothing can be older."""
        if self._first is not None:
            first, self._first = self._first, None
            self.rewind(self._agreed(), first)
        history, at, topic = self._agreed(), self._position, self._kafka.topics[EVENTS]
        self._log_id = history.log_id
        self._next = {p.number: max(at.offsets.get(p.number, 0), p.start) for p in topic}
        self._ledger = EventSequencer(topic="thl.shop", partitions=len(topic), position=at, history=history)

    def _agreed(self) -> History:
        kafka, at = self._kafka, self._position
        record = read_position(kafka)
        control = read_control(kafka)
        if record is None or control.log is None:
            raise LogDamaged("There is no log yet")
        topic = kafka.topics[EVENTS]
        starts = {p.number: p.start for p in topic}
        history = History.of(control, record.last_finished)
        whole = not any(starts.values())
        history.prove(
            at.log_id, at.seqno, at.epoch, source_id=at.source_id, from_first=whole, rewound_from=at.rewound_from
        )
        check_offsets(at, starts, {p.number: p.end for p in topic}, record)
        check_before(at, {p.number: self._tail_before(p, at.offsets.get(p.number, 0)) for p in topic})
        return history

    @staticmethod
    def _tail_before(partition: Partition, offset: int) -> Seqno:
        newest = partition.before(offset)
        return TailFound.of(newest and newest.value[0], start=partition.start, end=partition.end).seqno

    def read(self, number: int, most: int) -> int:
        """Take some messages of one partition.

        Returns:
            How many there were.
        """
        if self._ledger is None:
            self.handshake()
        batch = self._fetch(number, most)
        accept_in_ranges(self._ledger, number, batch)
        self._released()
        return len(batch)

    def read_together(self, most: int) -> int:
        """Take some messages of each partition, as Spark's tasks do.

        Returns:
            How many there were.
        """
        if self._ledger is None:
            self.handshake()
        read = {number: self._fetch(number, most) for number in self._next}
        accept_together(self._ledger, read, interval=most)
        self._released()
        return sum(map(len, read.values()))

    def _fetch(self, number: int, most: int) -> list[Message]:
        batch = self._kafka.fetch(EVENTS, number, self._next[number], most)
        if batch:
            self._next[number] = batch[-1][0] + 1
        return [(offset, header, piece) for offset, (header, piece) in batch]

    def _released(self) -> None:
        """Take what the sequencer releases."""
        for item in self._ledger.release():
            if isinstance(item, Voided):
                self.forget()
                continue
            if isinstance(item, tuple):
                events = [event for events in item for event in events.body]
                for header, pieces in sorted(events, key=lambda event: event[0].seqno):
                    self._ready.append((Applied(header.seqno, header.epoch, tuple(pieces)), header.event_id or ""))
                continue
            self._parts += item.bodies
            if item.complete:
                applied = Applied(item.seqno, item.epoch, tuple(self._parts))
                self._ready.append((applied, item.header.event_id or ""))
                self._parts = []

    def forget(self) -> None:
        """Drop the parts of an event that was given up."""
        self._parts = []

    def commit(self, most: int | None = None) -> None:
        """Make what is complete, or the first of it, visible with the position."""
        events, self._ready = self._ready[:most], self._ready[len(self._ready[:most]) :]
        if not events or self._ledger is None:
            return
        out = [event.seqno for event, _ in events if event.seqno in self._skips]
        if out and not self.passes_what_is_left_out:
            events = [event for event in events if event[0].seqno not in self._skips]
            if not events:
                return
        last, event_id = events[-1]
        head = self._position.rewound_from
        self._position = TargetPosition(
            service="shop",
            log_id=self._log_id,
            seqno=Seqno(last.seqno),
            epoch=Epoch(last.epoch),
            event_id=event_id,
            offsets=self._ledger.resumable(Seqno(last.seqno)),
            consistent=last.seqno >= head,
            rewound_from=head if last.seqno < head else NO_SEQNO,
        )
        kept = [event for event, _ in events if event.seqno not in self._skips]
        self.target.commit(self.token, kept, self._position, out if self.notes_what_is_left_out else ())
