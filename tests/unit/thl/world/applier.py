"""An applier and its target. Between any two calls the applier may be killed, or be overtaken by another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from connector.errors import Fenced, LogDamaged
from connector.thl.history import History, check_before, check_offsets
from connector.thl.ledger import Ledger, Voided
from connector.thl.position import TargetPosition
from connector.thl.run import Run
from connector.thl.tail import TailFound
from connector.thl.words import Epoch, Seqno
from tests.unit.thl.runs import take_in_runs
from tests.unit.thl.world.kafka import EVENTS, Kafka, Partition
from tests.unit.thl.world.producer import read_control, read_position


@dataclass(frozen=True)
class Applied:
    """An event that is visible on a target."""

    seqno: int
    epoch: int
    pieces: tuple[Any, ...]


@dataclass
class Target:
    """A database: rows and position change together, under the newest token."""

    position: TargetPosition = field(default_factory=lambda: TargetPosition(service="shop"))
    rows: list[Applied] = field(default_factory=list)
    token: int = 0
    writers: list[int] = field(default_factory=list)  # the token of each commit
    checks_token: bool = True
    commits_at_once: bool = True
    _late: TargetPosition = field(default_factory=lambda: TargetPosition(service="shop"))

    def claim(self) -> tuple[int, TargetPosition]:
        self.token += 1
        return self.token, self.position

    def commit(self, token: int, events: list[Applied], position: TargetPosition) -> None:
        if self.checks_token and token != self.token:
            raise Fenced("A newer applier has claimed the target", token=token)
        self.writers.append(token)
        self.rows += events
        if self.commits_at_once:
            self.position = position
        else:  # the position of this commit comes with the next one, too late for a crash between them
            self.position, self._late = self._late, position


class Applier:
    """`thl apply`, one run."""

    def __init__(self, kafka: Kafka, target: Target) -> None:
        self._kafka, self.target = kafka, target
        self.token, self._position = target.claim()
        self._log_id = ""
        self._ledger: Ledger[Any, Any] | None = None
        self._next: dict[int, int] = {}
        self._parts: list[Any] = []
        self._ready: list[tuple[Applied, str]] = []

    def handshake(self) -> None:
        """Prove that the target lies on the log's history; after the claim, so that nothing can be older."""
        kafka, at = self._kafka, self._position
        record = read_position(kafka)
        control = read_control(kafka)
        if record is None or control.log is None:
            raise LogDamaged("There is no log yet")
        topic = kafka.topics[EVENTS]
        starts = {p.number: p.start for p in topic}
        history = History.of(control, record.last_finished)
        history.prove(at.log_id, at.seqno, at.epoch, source_id=at.source_id, from_first=not any(starts.values()))
        check_offsets(at, starts, {p.number: p.end for p in topic}, record)
        check_before(at, {p.number: self._tail_before(p, at.offsets.get(p.number, 0)) for p in topic})
        self._log_id = history.log_id
        self._next = {p.number: max(at.offsets.get(p.number, 0), p.start) for p in topic}
        self._ledger = Ledger(topic="thl.shop", partitions=len(topic), position=at, history=history)

    @staticmethod
    def _tail_before(partition: Partition, offset: int) -> Seqno:
        newest = None
        for entry in partition.committed():
            if entry.offset < offset:
                newest = entry.value[0]
        return TailFound.of(newest, start=partition.start, end=partition.end).seqno

    def read(self, number: int, most: int) -> int:
        """Take some messages of one partition.

        Returns:
            How many there were.
        """
        if self._ledger is None:
            self.handshake()
        batch = self._kafka.fetch(EVENTS, number, self._next[number], most)
        take_in_runs(self._ledger, number, [(offset, header, piece) for offset, (header, piece) in batch])
        if batch:
            self._next[number] = batch[-1][0] + 1
        for item in self._ledger.release():
            if isinstance(item, Voided):
                self.forget()
                continue
            if isinstance(item, Run):
                for header, piece in item.body:
                    self._ready.append((Applied(header.seqno, header.epoch, (piece,)), header.event_id or ""))
                continue
            self._parts += item.bodies
            if item.complete:
                applied = Applied(item.seqno, item.epoch, tuple(self._parts))
                self._ready.append((applied, item.header.event_id or ""))
                self._parts = []
        return len(batch)

    def forget(self) -> None:
        """Drop the parts of an event that was given up."""
        self._parts = []

    def commit(self, most: int | None = None) -> None:
        """Make what is complete, or the first of it, visible with the position."""
        events, self._ready = self._ready[:most], self._ready[len(self._ready[:most]) :]
        if not events or self._ledger is None:
            return
        last, event_id = events[-1]
        position = TargetPosition(
            service="shop",
            log_id=self._log_id,
            seqno=Seqno(last.seqno),
            epoch=Epoch(last.epoch),
            event_id=event_id,
            offsets=self._ledger.resumable(Seqno(last.seqno)),
        )
        self.target.commit(self.token, [event for event, _ in events], position)
