"""An applier reads the log: one by one, or by tasks, of which some may die or run twice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from connector.applier.sequencer_feed import SequencerFeed
from connector.log.compact.segment import Segment
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.reading.event_sequencer import EventSequencer, Voided
from connector.log.transaction.position import TargetPosition
from tests.unit.log.model.ranges import Message, accept_in_ranges
from tests.unit.log.model.simulation.kafka import EVENTS, Kafka
from tests.unit.log.model.simulation.target import Applied
from tests.unit.log.model.simulation.tasks import Buffers, One, Slice, run_task

Ready = tuple[Applied, str]  # an event, its event id


class LogReading:
    """The events after a target's position, in the order of the log.

    Args:
        kafka: has the log.
        history: of the log.
        position: of the target; moved by its commits.
        skips: events that are left out.
        begins: partition → the first offset to read, where retention has deleted what the target had next.
    """

    waits_for_tasks_that_died = True
    takes_one_result_of_a_task = True
    cuts_segments = True  # where something happens within them: their events are read again, one by one
    joins_segments_by_seqno = True

    def __init__(
        self,
        kafka: Kafka,
        history: History,
        position: TargetPosition,
        skips: Collection[int],
        begins: Mapping[int, int],
    ) -> None:
        self._kafka, self.position, self._skips = kafka, position, skips
        self.ready: list[Ready] = []  # whole events for the next commit
        self.ends: set[int] = set()  # events with which a commit may end: not those within segments
        topic = kafka.topics[EVENTS]
        self._next = {p.number: begins.get(p.number, position.offsets.get(p.number, 0)) for p in topic}
        self._tasks: list[tuple[int, int, int]] = []  # partition, begin, end of what is not read yet
        self._interval = 0
        self._parts: list[Any] = []
        self._sequencer: EventSequencer[Any, Any] = EventSequencer(
            topic="thl.shop", partitions=len(topic), position=position, history=history
        )
        self._buffers = Buffers(self._between)
        buffers: Any = self._buffers
        self._feed = SequencerFeed(self._sequencer, buffers, self._one_by_one)

    def resumable(self, upto: int) -> dict[int, int]:
        """The offsets from which everything after an event can be read."""
        return self._sequencer.resumable(upto)

    def read(self, number: int, most: int) -> int:
        """Take some messages of one partition, after what tasks still have to read.

        Returns:
            How many there were.
        """
        self._run_tasks()
        batch = self._fetch(number, self._next[number], most)
        if batch:
            self._next[number] = batch[-1][0] + 1
        if batch and number in self._buffers.partitions:
            self._buffers.add([Slice(number, batch)])
        else:
            accept_in_ranges(self._sequencer, number, batch)
        self._feed_all(more=False)
        return len(batch)

    def read_together(self, most: int) -> int:
        """Take some messages of each partition by tasks; some of them may have died, and are left for the next time.

        Returns:
            How many there were.
        """
        self._run_tasks()
        count = 0
        for number, begin in self._next.items():
            found = self._fetch(number, begin, most)
            if found:
                count += len(found)
                self._next[number] = end = found[-1][0] + 1
                middle = found[len(found) // 2][0]
                self._tasks += (
                    [(number, begin, middle), (number, middle, end)] if len(found) > 4 else [(number, begin, end)]
                )
        self._interval = most if len(self._next) > 1 else 0
        if most % 3:
            self._run_tasks(twice=most % 5 == 0)
            self._feed_all(more=most % 2 == 0)
        return count

    def _run_tasks(self, *, twice: bool = False) -> None:
        """Run what has not been read yet: all of it, before anything counts.

        Args:
            twice: each task runs twice, as one that is slow does.
        """
        tasks, self._tasks = self._tasks, []
        if not self.waits_for_tasks_that_died:
            tasks = tasks[:1]
        for number, begin, end in tasks:
            results = [run_task(number, self._between(number, begin, end), self._interval) for _ in range(1 + twice)]
            for parts in results[:1] if self.takes_one_result_of_a_task else results:
                self._buffers.add(parts)

    def _between(self, number: int, begin: int, end: int) -> list[Message]:
        return [message for message in self._fetch(number, begin, end - begin) if message[0] < end]

    def _fetch(self, number: int, begin: int, most: int) -> list[Message]:
        batch = self._kafka.fetch(EVENTS, number, begin, most)
        return [(offset, header, piece) for offset, (header, piece) in batch]

    def _feed_all(self, *, more: bool) -> None:
        while self._feed.next(more=more) is not None:
            pass
        self._released()

    def _one_by_one(self, segment: Segment) -> bool:
        """Whether something happens within a segment: an end, or an event that is left out."""
        first, last, at = segment.first, segment.header.seqno, self.position
        return self.cuts_segments and (
            (at.intent is not None and last > at.intent.last)
            or first <= at.rewound_from < last
            or any(first <= skip <= last for skip in self._skips)
        )

    def _released(self) -> None:
        """Take what the sequencer releases."""
        for item in self._sequencer.release():
            if isinstance(item, Voided):
                self.forget()
                continue
            if isinstance(item, tuple):
                bodies = [one.body for one in item]
                segments = isinstance(bodies[0], Segment)
                events = [event for body in bodies for event in _events_of(body)]
                if self.joins_segments_by_seqno:
                    events.sort(key=lambda event: event[0].seqno)
                for header, pieces in events:
                    self._take(header, pieces, whole=not segments)
                if segments:
                    self.ends.add(events[-1][0].seqno)
                continue
            self._parts += [one.piece if isinstance(one, One) else one for one in item.bodies]
            if item.complete:
                self._take(item.header, self._parts, whole=True)
                self._parts = []

    def _take(self, header: FragmentHeader, pieces: list[Any], *, whole: bool) -> None:
        """Keep an event for the next commit; `whole`: that may end with it."""
        self.ready.append((Applied(header.seqno, header.epoch, tuple(pieces)), header.event_id or ""))
        if whole:
            self.ends.add(header.seqno)

    def forget(self) -> None:
        """Drop the parts of an event that was given up."""
        self._parts = []


def _events_of(body: Any) -> Iterable[tuple[FragmentHeader, list[Any]]]:
    if isinstance(body, Segment):
        return cast("Any", body.events)
    return body.events() if isinstance(body, Slice) else body
