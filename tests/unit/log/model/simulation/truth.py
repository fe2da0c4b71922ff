"""What an observer who sees everything knows of a log: the judge of all others."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from connector.kafka.prepared_records import XID_KEY
from connector.log.epochs.control import EpochRecord, LogRecord, PartitionMap
from connector.log.format.shard_rule import BY_TABLE, VERSION
from connector.log.ids import NO_EPOCH, NO_SEQNO, Kind
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, PREPARED, Entry, Kafka, Transaction
from tests.unit.log.model.simulation.source import Source, Sourced
from tests.unit.log.model.simulation.target import Applied, Target, share


@dataclass
class Truth:
    """The events of the log as they were finished, from the Kafka transactions that were committed."""

    kafka: Kafka
    source: Source
    log_id: str = ""
    events: list[Applied] = field(default_factory=list)
    epoch: int = NO_EPOCH
    partitions: PartitionMap = PartitionMap(1, 0)  # noqa: RUF009 - it is frozen
    forks: list[EpochRecord] = field(default_factory=list)
    newest: dict[int, tuple[Any, Entry]] = field(default_factory=dict)  # last fragment or marker of each partition
    looked_before: int = 0  # sessions up to this one looked at the log before it was damaged
    barrier: int = NO_SEQNO
    tails: dict[int, int] = field(default_factory=lambda: defaultdict(lambda: NO_SEQNO))
    numbers: set[tuple[int, int]] = field(default_factory=set)  # of the transactions that are events, and their content
    kept: dict[bytes, bytes] = field(default_factory=dict)  # the prepared transactions that are kept whole
    open: dict[tuple[int, int, int], list[Entry]] = field(default_factory=lambda: defaultdict(list))
    read: dict[int, list[Entry]] = field(default_factory=lambda: defaultdict(list))  # of each partition, by a consumer
    read_to: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    seen: set[int] = field(default_factory=set)  # by it: finished events

    def committed(self, transaction: Transaction) -> None:
        """A Kafka transaction is decided: hold it to promises 1 and 2."""
        new_epoch = None
        if any(partition.topic == CONTROL for partition, _ in transaction.records):
            self._online(transaction)
        for partition, entry in transaction.records:
            if partition.topic == CONTROL:
                key, record = entry.value
                if key == "log" and isinstance(record, LogRecord):
                    self.__init__(self.kafka, self.source, record.log_id)  # type: ignore[misc]
                elif key == "partitions":
                    self.partitions = record
                    assert record.since in (NO_SEQNO, len(self.events)), "a version begins where it may not"
                else:
                    new_epoch = record
            elif partition.topic == EVENTS and entry.value[0].kind is Kind.EPOCH:
                version = entry.value[0].metadata.get(VERSION, "1")
                assert version == str(self.partitions.version), "a marker does not name the version of the map"
                self.newest[partition.number] = partition, entry
            elif partition.topic == EVENTS:
                self._fragment(partition, entry)
            elif partition.topic == PREPARED:
                key, value = entry.value
                if value is None:
                    self.kept.pop(key, None)
                elif key.startswith(XID_KEY):
                    self.kept[key] = value
        if new_epoch is not None:
            assert new_epoch.first_seqno == len(self.events), "an epoch begins elsewhere than after the last event"
            assert new_epoch.epoch == self.epoch + 1, "an epoch is left out or given twice"
            self.epoch = new_epoch.epoch

    def _online(self, transaction: Transaction) -> None:
        records = [entry.value[1] for partition, entry in transaction.records if partition.topic == CONTROL]
        if any(isinstance(record, LogRecord) for record in records):
            return
        self.forks += [record for record in records if isinstance(record, EpochRecord) and record.forked]
        if transaction.session.saw_source == self.source.generation:
            self.matches_source()
        if records[-1].reason == "online" and self.kafka.session > self.looked_before:
            self.is_stored()

    def _fragment(self, partition: Any, entry: Entry) -> None:
        header = entry.value[0]
        assert header.prev_seqno == self.tails[partition.number], "the chain of the partition is broken"
        assert header.last_barrier == self.barrier, "the chain of barriers is broken"
        assert header.seqno == len(self.events), "seqno is not dense, or an event is finished twice"
        assert not self.events or header.epoch >= self.events[-1].epoch, "an older producer wrote after a newer one"
        if not header.barrier:
            assert header.seqno != self.partitions.since, "a version of the map begins without a barrier"
            assert ("." in header.shard) == (self.partitions.rule.by == BY_TABLE), "a shard of another version"
        fragments = self.open[partition.number, header.seqno, header.epoch]
        assert header.fragno == len(fragments), "a fragment is missing or doubled"
        fragments.append(entry)
        if partition.number in self.newest and not self._held(partition.number):
            del self.newest[partition.number]  # the producer went on over it: a hole, which readers find in the chain
        if header.last_frag:
            pieces = tuple(e.value[1] for e in fragments)
            number, content, _ = pieces[0]
            assert pieces == tuple((number, content, n) for n in range(len(pieces))), "an event mixes transactions"
            self.numbers.add((number, content))
            self.events.append(Applied(header.seqno, header.epoch, pieces))
            self.newest[partition.number] = partition, entry
            self.tails[partition.number] = header.seqno
            if header.barrier:
                self.barrier = header.seqno

    def is_deleted_after(self, seqno: int, *, open_too: bool) -> bool:
        """Whether retention has deleted a message of an event after this one; not of a copy that was given up.

        Args:
            seqno: the event.
            open_too: also of the event that a producer may still be writing.
        """
        ended = {event.seqno: event.epoch for event in self.events}
        topic = self.kafka.topics[EVENTS]
        for (number, of, epoch), entries in self.open.items():
            counts = epoch == ended.get(of, self.epoch if open_too else NO_EPOCH)
            if of > seqno and counts and entries and entries[0].offset < topic[number].start:
                return True
        return False

    def acknowledged(self, told: list[Sourced]) -> None:
        """Clients see transactions committed: Kafka has them."""
        ended = {transaction.of.number for transaction in told if transaction.of}
        for transaction in told:
            if transaction.does == "prepare":
                gtid = f'"{transaction.gtid}"'.encode()
                held = transaction.number in ended or any(gtid in value for value in self.kept.values())
            else:
                held = transaction.filtered or transaction.does == "rollback" or self.is_event(transaction)
            assert held, "a client saw a transaction committed that the log does not have"

    def is_event(self, transaction: Sourced) -> bool:
        """Whether what a transaction committed is an event."""
        return transaction.pieces[0][:2] in self.numbers

    def matches_source(self) -> None:
        """Promise 6: every event that is not trapped is a transaction of the source, in the source's order."""
        expected = [t.pieces for t in self.source.published()]
        live = self.live()
        assert [e.pieces for e in live] == expected[: len(live)], "the source has another history"

    def live(self, epoch: int | None = None) -> list[Applied]:
        """The events, without those that an epoch (up to this one) goes on without."""
        forks = [fork for fork in self.forks if epoch is None or fork.epoch <= epoch]
        if not forks:
            return self.events
        return [event for event in self.events if not any(_trapped(fork, event) for fork in forks)]

    def is_misled(self, target: Target) -> bool:
        """Whether it took an event before an epoch went on without it, or left it out: its position is past it."""
        live = self.live()
        expected = [event for event in live if event.seqno <= target.upto and event.seqno not in target.lacks]
        return target.rows != expected or not target.lacks <= {event.seqno for event in live}

    def is_stored(self) -> None:
        """Each partition's last event, or the marker after it, is in the log, or retention deleted it."""
        for number in self.newest:
            assert self._held(number), f"a producer goes online over a log that lost the end of partition {number}"

    def _held(self, number: int) -> bool:
        partition, entry = self.newest[number]
        now = self.kafka.partition(EVENTS, number)
        return now is partition and (entry in now.entries or entry.offset < now.start)

    def reads_once(self) -> None:
        """Promise 2: an ordinary `read_committed` consumer meets every finished event that is left once."""
        topic = self.kafka.topics[EVENTS]
        if any(self.read[partition.number] is not partition.readable for partition in topic):  # there is less to read
            self.read = {partition.number: partition.readable for partition in topic}
            self.read_to, self.seen = defaultdict(int), set()
        for number, readable in self.read.items():
            for entry in readable[self.read_to[number] :]:
                header = entry.value[0]
                if header.finishes:
                    assert header.seqno not in self.seen, "a finished event is in the log twice"
                    self.seen.add(header.seqno)
            self.read_to[number] = len(readable)

    def holds(self, target: Target) -> None:
        """Promises 3, 4 and 11: the target is the log up to one seqno, each event whole and once.

        But what was left out; and of a target that applies again, up to what it was taken back from. Of a commit that
        several writers make, the shares of those that have committed are there beyond it.
        """
        position, intent = target.position, target.intent
        expected = self.whole(target)
        if intent is not None and target.committed:
            upto, lacks = target.upto, target.lacks
            events = [
                e
                for e in self.live(target.reached)
                if intent.first <= e.seqno <= intent.last and (e.seqno > upto or e.seqno in lacks)
            ]
            shares = [share(events, number, intent.writers, intent.undivided) for number in target.committed]
            there = sorted((row.seqno, row.epoch, piece) for rows in shares for row in rows for piece in row.pieces)
            expected = expected + [
                Applied(seqno, epoch, tuple(piece for _, _, piece in pieces))
                for (seqno, epoch), pieces in groupby(there, key=lambda one: one[:2])
            ]
            expected.sort(key=lambda event: event.seqno)
        assert target.rows == expected, "the target is not the log up to some seqno"
        may = position.rewound_from == NO_SEQNO and intent is None
        assert position.consistent == may, "the target says what it is not"
        assert target.writers == sorted(target.writers), "an older applier wrote after a newer one"

    def whole(self, target: Target) -> list[Applied]:
        """What a target holds at its position."""
        return [e for e in self.live(target.reached) if e.seqno <= target.upto and e.seqno not in target.lacks]


def _trapped(fork: EpochRecord, event: Applied) -> bool:
    return any(first <= event.seqno <= last for first, last in (fork.forked.events if fork.forked else ()))
