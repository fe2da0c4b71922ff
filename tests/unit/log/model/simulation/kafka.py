"""Kafka, as far as the protocol rests on it.

- A partition is a list of entries with offsets; transaction markers take offsets too.
- A transaction's records become readable to `read_committed` partition by partition, as its markers arrive there;
  a reader stops before the first record whose transaction is undecided *in that partition*.
- `init_transactions` ends the older session's transaction, lets its markers arrive, and fences it.
- Bad things: retention, compaction, a tail lost by an unclean election, a topic deleted and made anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from connector.errors import BrokerUnavailable, Fenced, LogDamaged

EVENTS, CONTROL, POSITION, PREPARED = "events", "control", "position", "prepared"


@dataclass(eq=False)
class Transaction:
    """A Kafka transaction: `decided` by its coordinator, then told to each partition it wrote to."""

    session: Session
    decided: Literal["commit", "abort"] | None = None
    records: list[tuple[Partition, Entry]] = field(default_factory=list)
    untold: list[Partition] = field(default_factory=list)


@dataclass(eq=False)
class Entry:
    """A record (`value`), or the marker that ends a transaction in this partition."""

    offset: int
    transaction: Transaction
    value: Any = None
    marker: bool = False


@dataclass(eq=False)
class Partition:
    """One partition: what is between its log start offset and its end."""

    topic: str
    number: int
    start: int = 0
    end: int = 0
    entries: list[Entry] = field(default_factory=list)
    undecided: dict[Transaction, int] = field(default_factory=dict)  # here, and from which offset on; the oldest first
    readable: list[Entry] = field(default_factory=list)  # what `read_committed` shows; another list once it shows less
    _offsets: list[int] = field(default_factory=list)  # of these
    _looked_at: int = 0  # of the entries

    def append(self, transaction: Transaction, value: Any = None, *, marker: bool = False) -> Entry:
        entry = Entry(self.end, transaction, value, marker)
        self.entries.append(entry)
        self.end += 1
        if marker:
            self.undecided.pop(transaction, None)
            self._show()
        else:
            self.undecided.setdefault(transaction, entry.offset)
        return entry

    def keep(self, kept: Callable[[Entry], bool]) -> None:
        """The other entries are gone."""
        self.entries = [entry for entry in self.entries if kept(entry)]
        self.readable, self._offsets, self._looked_at = [], [], 0
        self._show()

    def _show(self) -> None:
        """What has become decided is readable."""
        stable, found, at = self.stable(), [], self._looked_at
        for entry in islice(self.entries, at, None):
            if entry.offset >= stable:
                break
            at += 1
            if not entry.marker and entry.transaction.decided == "commit":
                found.append(entry)
        self.readable += found
        self._offsets += [entry.offset for entry in found]
        self._looked_at = at

    def stable(self) -> int:
        """The last stable offset: everything before it is decided here."""
        return next(iter(self.undecided.values()), self.end)

    def read(self, offset: int, most: int) -> list[Entry]:
        """What `read_committed` shows from `offset` on."""
        at = bisect_left(self._offsets, offset)
        return self.readable[at : at + most]

    def before(self, offset: int) -> Entry | None:
        """The last that `read_committed` shows before `offset`."""
        at = bisect_left(self._offsets, offset)
        return self.readable[at - 1] if at else None


class Kafka:
    """A cluster with the four topics of one service."""

    fences = True
    reads_to_the_end = True

    def __init__(self, partitions: int) -> None:
        self.topics = {name: self._made(name, partitions) for name in (EVENTS, CONTROL, POSITION, PREPARED)}
        self.session = 0
        self.running: Transaction | None = None  # of the service's transactional id
        self.ending: Transaction | None = None  # decided, but not yet told everywhere
        self.on_commit: Callable[[Transaction], None] = lambda _: None

    @staticmethod
    def _made(name: str, partitions: int) -> list[Partition]:
        return [Partition(name, number) for number in range(partitions if name == EVENTS else 1)]

    def partition(self, topic: str, number: int = 0) -> Partition:
        return self.topics[topic][number]

    def read_whole(self, topic: str, number: int = 0) -> list[Any]:
        """Everything committed, up to the high watermark of now: undecided transactions are waited for.

        Raises:
            BrokerUnavailable: one is undecided still: try again.
        """
        return [entry.value for entry in self.settled(topic, number).readable]

    def settled(self, topic: str, number: int = 0) -> Partition:
        """A partition, with nothing undecided in it.

        Raises:
            BrokerUnavailable: something is: try again.
        """
        partition = self.partition(topic, number)
        if self.reads_to_the_end and partition.undecided:
            raise BrokerUnavailable("A transaction is undecided", topic=topic, partition=number)
        return partition

    def fetch(self, topic: str, number: int, offset: int, most: int) -> list[tuple[int, Any]]:
        """The next committed records from an offset on.

        Raises:
            LogDamaged: there is no such offset; the reader is set to fail on that, not to reset.
        """
        partition = self.partition(topic, number)
        if not partition.start <= offset <= partition.end:
            raise LogDamaged("Offset out of range", partition=number, offset=offset)
        return [(entry.offset, entry.value) for entry in partition.read(offset, most)]

    # --- transactions

    def init_transactions(self) -> Session:
        if self.fences and self.running is not None:
            self._end("abort")
        self.tell_all()
        self.session += 1
        return Session(self, self.session)

    def _end(self, how: Literal["commit", "abort"]) -> None:
        transaction, self.running = self.running, None
        if transaction is None:
            return
        transaction.decided = how
        transaction.untold = list(dict.fromkeys(partition for partition, _ in transaction.records))
        self.ending = transaction
        if how == "commit":
            self.on_commit(transaction)

    def tell_one(self, which: int) -> None:
        """The marker of the ended transaction arrives in one of its partitions."""
        if self.ending is not None and self.ending.untold:
            partition = self.ending.untold.pop(which % len(self.ending.untold))
            partition.append(self.ending, marker=True)
            if not self.ending.untold:
                self.ending = None

    def tell_all(self) -> None:
        while self.ending is not None and self.ending.untold:
            self.tell_one(0)
        self.ending = None

    # --- bad things

    def delete_old(self, number: int, upto: int) -> None:
        """Retention: everything before `upto` is deleted, never what is undecided."""
        partition = self.partition(EVENTS, number)
        partition.start = max(partition.start, min(upto, partition.stable()))
        partition.keep(lambda entry: entry.offset >= partition.start)

    def compact(self, topic: str) -> None:
        """Only the newest committed record of each key stays; a value is (key, content)."""
        partition = self.partition(topic)
        newest = {entry.value[0]: entry for entry in partition.readable}
        stable = partition.stable()
        partition.keep(lambda e: e.offset >= stable or e.marker or newest.get(e.value[0]) is e)

    def lose_tail(self, topic: str, number: int, count: int) -> bool:
        """An unclean election: the last entries are gone, from the beginning of a transaction on.

        Returns:
            Whether committed records were among them.
        """
        partition = self.partition(topic, number)
        if partition.stable() < partition.end:
            return False
        cut = max(partition.start, partition.end - count)
        while {id(e.transaction) for e in partition.entries if e.offset < cut} & {
            id(e.transaction) for e in partition.entries if e.offset >= cut
        }:
            cut -= 1
        lost = [entry for entry in partition.entries if entry.offset >= cut]
        partition.end = cut
        partition.keep(lambda entry: entry.offset < cut)
        return any(not entry.marker and entry.transaction.decided == "commit" for entry in lost)

    def make_anew(self, topic: str) -> None:
        """The topic is deleted and created again: empty, its offsets from 0."""
        self.topics[topic] = self._made(topic, len(self.topics[topic]))


class Session:
    """A producer's, from `init_transactions` on."""

    def __init__(self, kafka: Kafka, number: int) -> None:
        self._kafka = kafka
        self.number = number
        self.saw_source = 0  # as which it saw the source when it last compared it with the log

    def _check(self) -> None:
        if self._kafka.fences and self.number != self._kafka.session:
            raise Fenced("A newer producer has taken over", session=self.number)

    def send(self, topic: str, number: int, value: Any) -> None:
        """Write in the running transaction, which begins with the first record."""
        self._check()
        kafka = self._kafka
        if kafka.running is None:
            kafka.tell_all()  # a new transaction waits until the last one is told everywhere
            kafka.running = Transaction(self)
        partition = kafka.partition(topic, number)
        kafka.running.records.append((partition, partition.append(kafka.running, value)))

    def confirm(self) -> None:
        """Write something in a transaction and abort it: to be told if a newer session has begun."""
        self._check()

    def commit(self) -> None:
        self._check()
        self._kafka._end("commit")

    def abort(self) -> None:
        self._check()
        self._kafka._end("abort")
