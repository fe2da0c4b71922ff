"""An applier. Between any two calls, and any two steps of a commit, it may be killed, or be overtaken by another.

An applier may leave events out (`--skip-seqno`), or take the target's position back first (`--from-seqno`): then it
applies again what is there already, and writes over it. It may have several writers (`target.writers`) and a relay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Any, cast

from connector.applier.sequencer_feed import SequencerFeed
from connector.errors import BrokerUnavailable, LogDamaged
from connector.log.compact.segment import Segment
from connector.log.epochs.history import History, check_before, check_offsets
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.reading import search as seek
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided
from connector.log.transaction.position import Intent, TargetPosition
from connector.log.writing.tail import TailFound
from tests.unit.log.model.ranges import Message, accept_in_ranges
from tests.unit.log.model.simulation.kafka import EVENTS, Kafka, Partition
from tests.unit.log.model.simulation.producer import read_control, read_position
from tests.unit.log.model.simulation.relay import Record, Relay
from tests.unit.log.model.simulation.target import Applied, Channel, Target, share
from tests.unit.log.model.simulation.tasks import Buffers, One, Slice, run_task


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

    keeps_the_head = True  # of what is taken back, until it is there again
    takes_its_offsets_back = True
    takes_its_epoch_back = True
    passes_what_is_left_out = True  # with its position
    notes_what_is_left_out = True  # in the same commit
    writes_the_intent_first = True  # before any channel commits
    ends_the_intent_last = True  # with the position, once all channels have committed
    makes_whole_exactly = True  # an intent, with all of its events and no others
    makes_whole_first = True  # before its options count
    keeps_the_number = True  # of writers, of an intent
    keeps_what_is_undivided = True  # in an intent
    leaves_out_what_is_committed = True
    writes_the_relay_first = True
    waits_for_tasks_that_died = True
    takes_one_result_of_a_task = True
    cuts_segments = True  # where something happens within them: their events are read again, one by one
    joins_segments_by_seqno = True

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
        self.done = False  # an earlier applier's commit is whole
        self._skips, self._first = frozenset(skips), first
        self._undo = undo
        self._committing: Iterator[str] = iter(())
        self.busy = False  # within a commit
        self._merged: list[Channel] = []
        self._log_id = LogId("")
        self._ledger: EventSequencer[Any, Any] | None = None
        self._next: dict[int, int] = {}
        self._tasks: list[tuple[int, int, int]] = []  # partition, begin, end of what is not read yet
        self._interval = 0
        self._parts: list[Any] = []
        self._ends: set[int] = set()  # events with which a commit may end: not those within segments
        self._ready: list[tuple[Applied, str]] = []

    def next(self) -> Applier:
        """The next attempt, once a commit is whole."""
        return Applier(self._kafka, self.target, **self._options)

    def die(self) -> None:
        """The server rolls back what is open."""
        for channel in self._merged:
            channel.end()

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

    def undo(self, history: History, to: Seqno) -> None:
        """Take data and position back, if nothing stands against it."""
        at = self._position
        out = {seqno for seqno in self.target.lacks if seqno > to}
        if to >= at.seqno or not at.consistent or at.rewound_from != NO_SEQNO or out:
            return
        first = Seqno(to + 1)
        if history.beginning(first) != first:
            return
        epoch, offsets = history.covering(to).epoch, self._offsets_of(first)
        taken_back = replace(at, seqno=to, epoch=epoch, event_id="", offsets=offsets)
        self.target.take_back(self.token, taken_back)
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
        if self._undo is not None:
            to, self._undo = self._undo, None
            self.undo(self._agreed(), to)
        history, at, topic = self._agreed(), self._position, self._kafka.topics[EVENTS]
        self._log_id = history.log_id
        self._next = {p.number: max(at.offsets.get(p.number, 0), p.start) for p in topic}
        self._ledger = EventSequencer(topic="thl.shop", partitions=len(topic), position=at, history=history)
        self._buffers = Buffers(self._between)
        buffers: Any = self._buffers
        self._feed = SequencerFeed(self._ledger, buffers, self._one_by_one)
        if self.relay is not None:
            self.relay.begin(at, history.log_id)

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
        history.prove_target(at, from_first=whole)
        check_offsets(at, starts, {p.number: p.end for p in topic}, record)
        check_before(at, {p.number: self._tail_before(p, at.offsets.get(p.number, 0)) for p in topic})
        return history

    @staticmethod
    def _tail_before(partition: Partition, offset: int) -> Seqno:
        newest = partition.before(offset)
        return TailFound.of(newest and newest.value[0], start=partition.start, end=partition.end).seqno

    def read(self, number: int, most: int) -> int:
        """Take some messages of one partition, after what tasks still have to read.

        Returns:
            How many there were.
        """
        if self._ledger is None:
            self.handshake()
        self._run_tasks()
        batch = self._fetch(number, self._next[number], most)
        if batch:
            self._next[number] = batch[-1][0] + 1
        if batch and number in self._buffers.partitions:
            self._buffers.add([Slice(number, batch)])
        else:
            accept_in_ranges(self._ledger, number, batch)
        self._feed_all(more=False)
        return len(batch)

    def read_together(self, most: int) -> int:
        """Take some messages of each partition by tasks; some of them may have died, and are left for the next time.

        Returns:
            How many there were.
        """
        if self._ledger is None:
            self.handshake()
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
        first, last, at = segment.first, segment.header.seqno, self._position
        return self.cuts_segments and (
            (at.intent is not None and last > at.intent.last)
            or first <= at.rewound_from < last
            or any(first <= skip <= last for skip in self._skips)
        )

    def _released(self) -> None:
        """Take what the sequencer releases."""
        for item in self._ledger.release():
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
                    self._ends.add(events[-1][0].seqno)
                continue
            self._parts += [one.piece if isinstance(one, One) else one for one in item.bodies]
            if item.complete:
                self._take(item.header, self._parts, whole=True)
                self._parts = []

    def _take(self, header: FragmentHeader, pieces: list[Any], *, whole: bool) -> None:
        """Keep an event for the next commit; `whole`: that may end with it."""
        self._ready.append((Applied(header.seqno, header.epoch, tuple(pieces)), header.event_id or ""))
        if whole:
            self._ends.add(header.seqno)

    def forget(self) -> None:
        """Drop the parts of an event that was given up."""
        self._parts = []

    def commit(self, most: int | None = None, steps: int | None = None) -> None:
        """Make what is complete, or the first of it, visible with the position.

        Args:
            most: of the events.
            steps: of the commit, at each of which something may happen; None: all.
        """
        if not self.busy:
            self._begin_commit(most)
        while self.busy and steps != 0:
            self.busy = next(self._committing, None) is not None
            steps = steps and steps - 1

    def _begin_commit(self, most: int | None) -> None:
        intent = self._position.intent if self.makes_whole_exactly else None
        if intent is not None:
            most = sum(event.seqno <= intent.last for event, _ in self._ready)
            if not most or self._ready[most - 1][0].seqno < intent.last:
                return
        while most and most < len(self._ready) and self._ready[most - 1][0].seqno not in self._ends:
            most += 1
        events, self._ready = self._ready[:most], self._ready[len(self._ready[:most]) :]
        if not events or self._ledger is None:
            return
        out = [event.seqno for event, _ in events if event.seqno in self._skips]
        if out and not self.passes_what_is_left_out:
            events = [event for event in events if event[0].seqno not in self._skips]
            if not events:
                return
        last, event_id = events[-1]
        after = self._after(last, event_id, self._ledger.resumable(Seqno(last.seqno)))
        kept = [event for event in events if event[0].seqno not in self._skips]
        self._committing, self.busy = self._steps(kept, after, out), True

    def _after(self, last: Applied, event_id: str, offsets: dict[int, int]) -> TargetPosition:
        head = self._position.rewound_from
        return TargetPosition(
            service="shop",
            log_id=self._log_id,
            seqno=Seqno(last.seqno),
            epoch=Epoch(last.epoch),
            event_id=event_id,
            offsets=offsets,
            consistent=last.seqno >= head,
            rewound_from=head if last.seqno < head else NO_SEQNO,
        )

    def _steps(self, kept: list[tuple[Applied, str]], after: TargetPosition, out: Collection[int]) -> Iterator[str]:
        """A commit; at each step its applier may be stopped or killed."""
        events = [event for event, _ in kept]
        if self.relay is not None and self.writes_the_relay_first:
            yield from self._write_relay(kept)
        left_out = out if self.notes_what_is_left_out else ()
        if self._position.intent is not None or (self.writers > 1 and not out and len(events[0].pieces) > 1):
            committing = self._divided(events, after)
            if not self.ends_the_intent_last:
                yield from takewhile(lambda step: step != "wrote the intent", committing)
                self.target.commit(self.token, [], after, left_out)
            yield from committing
            if not self.ends_the_intent_last:
                return
            events = []
        self.target.commit(self.token, events, after, left_out)
        self.done = self.making_whole
        self._position = after
        if self.relay is not None and not self.writes_the_relay_first:
            yield from self._write_relay(kept)

    def _write_relay(self, kept: list[tuple[Applied, str]]) -> Iterator[str]:
        relay, before = self.relay, self._position.seqno
        assert relay is not None
        for event, event_id in kept:
            relay.write([Record(self._log_id, before, event, event_id)])
            before = Seqno(event.seqno)
        yield "wrote the relay"
        relay.sync()
        yield "synced it"

    def _divided(self, events: list[Applied], after: TargetPosition) -> Iterator[str]:
        """The shares of several writers, of which each commits for itself."""
        target, found = self.target, self._position.intent
        intent = found or Intent(
            first=Seqno(self._position.seqno + 1),
            last=after.seqno,
            epoch=after.epoch,
            writers=self.writers,
            hash_version=1,
            undivided=target.undivided,
            log_id=self._log_id,
        )
        writers = intent.writers if self.keeps_the_number else self.writers
        undivided = intent.undivided if self.keeps_what_is_undivided else target.undivided
        shares = {number: share(events, number, writers, undivided) for number in range(writers)}
        if self.leaves_out_what_is_committed:
            shares = {number: rows for number, rows in shares.items() if number not in intent.committed}
        self._merged = []
        for number, rows in shares.items():
            if rows:
                self._merged.append(target.merge(self.token, number, after.seqno, rows))
                yield f"merged {number}"
        if found is None and self.writes_the_intent_first:
            target.begin(self.token, intent, self._log_id)
            target.written_by = self.relay
            yield "wrote the intent"
        turn = self.token % max(1, len(self._merged))
        for channel in (*self._merged[turn:], *self._merged[:turn]):
            channel.commit()
            yield f"committed {channel.number}"

    def from_relay(self, *, kafka_answers: bool) -> Iterator[str]:
        """Make the target's intent whole without Kafka, and nothing else."""
        if self._position.intent is None or kafka_answers:
            return
        if self.relay is None:
            raise BrokerUnavailable("there is no relay")
        records = self.relay.needed(self._position)
        self._log_id = records[0].log_id
        last = records[-1]
        after = self._after(last.event, last.event_id, dict(self._position.offsets))
        yield from self._divided([record.event for record in records], after)
        self.target.commit(self.token, [], after)
        self._position, self.done = after, True


def _events_of(body: Any) -> Iterable[tuple[FragmentHeader, list[Any]]]:
    if isinstance(body, Segment):
        return cast("Any", body.events)
    return body.events() if isinstance(body, Slice) else body
