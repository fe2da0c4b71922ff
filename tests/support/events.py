"""A log with all cases that its readers must handle, on several partitions, and the expected events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from connector.log.epochs.control import EpochRecord
from connector.log.format.shard import partition_of
from connector.log.ids import Epoch, Seqno, ShardId
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from tests.support.fragments import by_epoch, change, in_parts, marker, record, statement
from tests.support.log_writer import LogWriter

BEGAN = 1_700_000_000_000_000  # µs
SECOND = 1_000_000
UUID = "6f1c9a52-0000-11ee-8c99-0242ac120002"


def shard_in(partition: int, partitions: int) -> str:
    """The name of a shard that belongs to this partition."""
    return next(name for n in range(99) if partition_of(ShardId(name := f"shop{n}"), partitions) == partition)


@dataclass
class MemoryLog:
    """A log in memory, as the events of `LogWriter` make it: offsets and messages by partition."""

    partitions: int = 1
    log_id: str = "f" * 32
    epoch: int = 0
    gtid_set: str = ""
    epochs: list[EpochRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.messages: dict[int, list[tuple[int, bytes]]] = {p: [] for p in range(self.partitions)}
        self._ends = dict.fromkeys(range(self.partitions), 0)
        self._tails = dict.fromkeys(range(self.partitions), -1)
        self._last = -1

    def online(self) -> None:
        self.epoch += 1
        first = Seqno(self._last + 1)
        started = {"source_id": "db:3306", "server_uuid": "u", "started": 0, "reason": "online"}
        self.epochs.append(EpochRecord(epoch=Epoch(self.epoch), first_seqno=first, **started))
        for partition, tail in self._tails.items():
            self.raw(
                by_epoch(marker(self.epoch, first, self._last, log_id=self.log_id, tail=tail)), partition=partition
            )

    def events(self, records: Sequence[dict[str, Any]], partition: int = 0) -> None:
        for each in records:
            if each["last_frag"]:
                self._last = self._tails[partition] = each["seqno"]
        self.raw(*(by_epoch({**each, "epoch": self.epoch}) for each in records), partition=partition)

    def raw(self, *values: bytes, partition: int = 0, abort: bool = False) -> None:
        for value in values:
            if not abort:
                self.messages[partition].append((self._ends[partition], value))
            self._ends[partition] += 1
        self._ends[partition] += 1  # Kafka's own marker


COLUMNS = ("id", "text", "nothing", "double", "bytes")


def values(shard: str, number: int) -> list[Any]:
    return [number, f"{shard} ü {number}", None, number / 8, bytes((number % 256, 255))]


@dataclass
class Story:
    """Writes events as one producer after another does.

    Args:
        log: empty.
        expected: seqno, epoch, shard and changes of each finished event.
    """

    log: LogWriter | MemoryLog
    expected: list[tuple[int, int, str, list[dict[str, Any]]]] = field(default_factory=list)
    seqno: int = -1
    barrier: int = -1
    tails: dict[int, int] = field(default_factory=dict)

    def fragments(
        self, shard: str, count: int, rows: int, kind: str = "transaction", parts: int = 1
    ) -> list[dict[str, Any]]:
        """The next event's fragments: `count` changes, one in each, or in several if in parts.

        Args:
            kind: of the event; a `Part`: it is one of a load.
        """
        table, key = ("notes", ()) if kind is Part.WHOLE else ("orders", (0,))
        load = LoadEvent("l1", kind, TableName("shop", table)) if isinstance(kind, Part) else None
        definition = kind in {"ddl", Part.BEGIN}
        seqno, partition = self.seqno + 1, partition_of(ShardId(shard), self.log.partitions)
        result: list[dict[str, Any]] = []
        for number in range(count * parts):
            images = [(None, values(shard, seqno * 1000 + number // parts * rows + n)) for n in range(rows)]
            made = (
                statement(f"CREATE TABLE t{seqno} (id INT)")
                if definition
                else change("read" if load else "insert", images, columns=COLUMNS, table=table, key=key)
            )
            changes = [] if kind is Part.END else [made] if parts == 1 else [in_parts(made, parts)[number % parts]]
            last = number == count * parts - 1
            result.append(
                record(
                    seqno,
                    changes,
                    fragno=number,
                    last_frag=last,
                    kind="load" if load else kind,
                    shard=shard,
                    epoch=self.log.epoch,
                    prev_seqno=self.tails.get(partition, -1),
                    last_barrier=self.barrier,
                    rows=0 if definition or kind is Part.END else (number + 1) // parts * rows,
                    gtid=None if load else f"{UUID}:{seqno + 1}",
                    metadata=load.metadata() if load else {},
                    commit_time=BEGAN + seqno * SECOND if last else None,
                )
            )
        return result

    def event(
        self,
        shard: str,
        count: int = 1,
        rows: int = 2,
        kind: str = "transaction",
        *,
        cut: bool = False,
        parts: int = 1,
    ) -> None:
        """Writes an event, with `cut` in as many Kafka transactions as it has fragments."""
        fragments = self.fragments(shard, count, rows, kind, parts)
        whole = fragments if parts == 1 else self.fragments(shard, count, rows, kind)
        partition = partition_of(ShardId(shard), self.log.partitions)
        for part in [[one] for one in fragments] if cut else [fragments]:
            self.log.events(part, partition)
        self.seqno += 1
        self.tails[partition] = self.seqno
        self.log.gtid_set = f"{UUID}:1-{self.seqno + 1}"
        if shard == "#UNKNOWN":
            self.barrier = self.seqno
        changes = [each for fragment in whole for each in fragment["changes"]]
        self.expected.append((self.seqno, self.log.epoch, shard, changes))

    def given_up(self, shard: str, count: int = 2, parts: int = 1) -> None:
        """Commits the next event's first fragments; then the producer ends and another goes online."""
        partition = partition_of(ShardId(shard), self.log.partitions)
        self.log.events(self.fragments(shard, count + 1, 1, parts=parts)[:count], partition)
        self.log.online()

    def aborted(self, shard: str, count: int = 3) -> None:
        """Writes a Kafka transaction that is aborted."""
        partition = partition_of(ShardId(shard), self.log.partitions)
        self.log.raw(*map(by_epoch, self.fragments(shard, count, 1)), partition=partition, abort=True)

    def tell(self) -> None:
        """Writes everything: fragments, aborted transactions, given up attempts, epochs, barriers, loads."""
        shards = [shard_in(partition, self.log.partitions) for partition in range(self.log.partitions)]
        self.log.online()
        self.event("#UNKNOWN", kind="ddl")
        for n in range(12):
            self.event(shards[n * 5 % len(shards)])
        self.aborted(shards[-1])
        self.event(shards[-1], 5, rows=3, cut=True)
        self.event("#UNKNOWN", 3)
        self.given_up(shards[-1], parts=3)
        self.event(shards[0], 2, parts=3)
        self.given_up("#UNKNOWN")
        self.given_up(shards[-1], 1)
        self.event(shards[-1])
        self.event("#UNKNOWN", kind="ddl")
        for n in range(9):
            self.event(shards[n * 7 % len(shards)], 1 + n % 3, cut=n == 5)
        self.event("#UNKNOWN", kind=Part.BEGIN)
        self.event(shards[0], 2, kind=Part.ROWS, parts=2)
        self.given_up(shards[0])
        self.event(shards[0], kind=Part.ROWS, cut=True)
        self.event("#UNKNOWN", 3, kind=Part.WHOLE, parts=2)
        self.event("#UNKNOWN", kind=Part.END)
        self.log.online()
        self.event("#UNKNOWN")
        self.event(shards[-1])
        # Last, an unfinished event, which no reader may return.
        partition = partition_of(ShardId(shards[0]), self.log.partitions)
        self.log.events(self.fragments(shards[0], 3, 1)[:2], partition)
