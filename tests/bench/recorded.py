"""Logs in memory, written by the producer's encoder: the benchmark's tables without MySQL and Kafka.

Kept as Arrow files in a folder, because making a million rows in Python takes half a minute. `bulk` and `oltp` are the
transactions of `workload`; `load` is the rows of `bulk` as the load of a new table among a stream; `cold` is a table of
rows first, then transactions of two inserts, two updates and a delete whose keys no other statement touches: nothing of
it collapses.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from connector.log.ids import NO_SEQNO, Action, Epoch, Kind, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import TableLayout
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SourcePosition
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.spark.stream.batch_sizer import MOST
from tests.bench import workload
from tests.support.net import Row, layout, value, varint

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
BATCH_BYTES = 32 << 20  # what one batch of Spark's holds, about
_COLUMNS = [
    "id bigint unsigned not null",
    "a int not null",
    "b bigint",
    "c decimal(18,4) not null",
    "d datetime(6) not null",
    "e timestamp",
    "f double not null",
    "g varchar(100) not null",
    "h char(20)",
    "i varbinary(60)",
]
Change = tuple[Action, Row | None, Row | None]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded log.

    Args:
        before: batches that fill the tables, not to be measured.
        batches: measured messages, in columns partition, offset, value.
        rows: row changes in `batches`.
    """

    before: list[pa.Table]
    batches: list[pa.Table]
    rows: int


def record(kind: str, rows: int, folder: Path) -> Recording:
    """The log of a workload: read from the folder, or made and stored there."""
    made = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    paths = [folder / f"thl-{kind}-{rows}-{made}.{part}.arrow" for part in ("before", "measured")]
    if not all(path.exists() for path in paths):
        writer = _Writer(kind)
        fill = [[(Action.INSERT, None, _row(n)) for n in range(at, at + 1000)] for at in range(0, rows, 1000)]
        _keep(paths[0], writer.events(fill if kind == "cold" else []))
        _keep(paths[1], writer.events({"bulk": _bulk, "oltp": _oltp, "cold": _cold, "load": _load}[kind](rows)))
    before, batches = (_kept(path) for path in paths)
    return Recording(before, batches, rows)


def _row(n: int) -> Row:
    digest = hashlib.sha256(str(n).encode()).hexdigest()
    second = f"{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}"
    return (
        n,
        n * 7 % 2147483647,
        n * 1000003,
        f"{n % 1000000 / 13:.4f}",
        f"2026-01-{2 + n // 86400 % 20:02} {second}.678901",
        None if n % 5 == 0 else f"2026-01-{1 + n // 86400 % 20:02} {second}",
        n / 7,
        digest[:32] * 3,
        digest[-20:],
        None if n % 3 == 0 else bytes.fromhex(digest[:32] * 3),
    )


def _changed(row: Row) -> Row:
    return (row[0], int(row[1] or 0) + 1, *row[2:7], str(row[7])[::-1], *row[8:])


def _bulk(rows: int) -> Iterator[list[Change]]:
    for at in range(0, rows, 1000):
        yield [(Action.INSERT, None, _row(n)) for n in range(at, at + 1000)]


def _load(rows: int) -> Iterator[list[Change]]:
    return ([(Action.READ, None, after) for _, _, after in changes] for changes in _bulk(rows))


def _oltp(rows: int) -> Iterator[list[Change]]:
    there: dict[int, Row] = {}
    for n in range(0, rows // 5 * 3, 3):
        changes: list[Change] = [(Action.INSERT, None, there.setdefault(m, _row(m))) for m in range(n, n + 3)]
        old = there[max(0, n - 3000)]
        there[int(old[0] or 0)] = new = _changed(old)
        changes.append((Action.UPDATE, old, new))
        if gone := there.pop(max(1, n - 6001), None):
            changes.append((Action.DELETE, gone, None))
        for old_key in range(n - 9003, n - 9000):
            there.pop(old_key, None)  # its key is not used again
        yield changes


def _cold(rows: int) -> Iterator[list[Change]]:
    keys = list(range(rows))
    random.Random(1).shuffle(keys)
    free = iter(keys)
    for n in range(rows, rows + rows // 5 * 2, 2):
        first, second, gone = (_row(key) for key in islice(free, 3))
        yield [
            (Action.INSERT, None, _row(n)),
            (Action.INSERT, None, _row(n + 1)),
            (Action.UPDATE, first, _changed(first)),
            (Action.UPDATE, second, _changed(second)),
            (Action.DELETE, gone, None),
        ]


class _Writer:
    """Writes one log, from the creation of its tables."""

    def __init__(self, kind: str) -> None:
        self._layout: TableLayout = layout(f"{workload.SCHEMA}.{kind}", _COLUMNS, ["id"])
        self._create = workload.TABLE.format(name=kind)
        self._encoder = Encoder(
            service="bench",
            source_id="127.0.0.1:3306",
            partitions=1,
            limits=Limits(fragment=64 << 10, shard=1 << 20, message=8 << 20),
        )
        self._encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=NO_SEQNO))
        self._load = kind == "load"
        self._number = 0
        self._offset = 0

    def events(self, transactions: Iterable[list[Change]]) -> Iterator[tuple[int, bytes]]:
        """Offset and value of every message."""
        if not self._number:
            create = [Statement(workload.SCHEMA, self._create)]
            yield from self._messages(Kind.DDL, [Statement(workload.SCHEMA, f"CREATE DATABASE {workload.SCHEMA}")])
            yield from self._messages(Kind.LOAD if self._load else Kind.DDL, create, Part.BEGIN)
        for changes in transactions:
            rows = [_rows(self._layout, change) for change in _runs(changes)]
            yield from self._messages(Kind.LOAD if self._load else Kind.TRANSACTION, rows)

    def _messages(
        self, kind: Kind, changes: Sequence[Rows | Statement], part: Part = Part.ROWS
    ) -> Iterator[tuple[int, bytes]]:
        self._number += 1
        gtid, metadata = f"{UUID}:{self._number}", None
        if kind is Kind.LOAD:
            gtid, metadata = None, LoadEvent("l1", part, self._layout.name).metadata()
        begin = TransactionStart(1, 7, gtid, self._number - 1, self._number, self._place(), kind, metadata=metadata)
        commit_time = 1_760_000_000_000_000 + self._number * 1000
        ending = TransactionEnd(
            SourcePosition("mysql-bin.000001", self._number * 1400 + 1400), commit_time, Outcome.COMMIT
        )
        for fragment in self._encoder.encode(TransactionBatch(begin, changes, ending)):
            yield self._offset, fragment.value
            self._offset += 1
        self._offset += self._number % 50 == 0  # a transaction's marker

    def _place(self) -> SourcePosition:
        return SourcePosition("mysql-bin.000001", self._number * 1400)


def _runs(changes: list[Change]) -> Iterator[list[Change]]:
    """Consecutive rows of one action, like those of one statement."""
    run: list[Change] = []
    for change in changes:
        if run and (run[0][0] != change[0] or len(changes) == 5):
            yield run
            run = []
        run.append(change)
    yield run


def _rows(table: TableLayout, run: list[Change]) -> Rows:
    data, ends = bytearray(), array("Q")
    for _, before, after in run:
        data += _image(before) + _image(after)
        ends.append(len(data))
    return Rows(table, run[0][0], bytes(data), ends)


def _image(row: Row | None) -> bytes:
    return varint(0) if row is None else varint(1) + varint(len(row)) + b"".join(map(value, row)) + varint(0)


def _keep(path: Path, messages: Iterator[tuple[int, bytes]]) -> None:
    schema = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])
    with ipc.new_file(str(path), schema) as file:
        for batch in _full(messages):
            offsets, values = zip(*batch, strict=True)
            columns = [pa.array([0] * len(batch), pa.int32()), pa.array(offsets, pa.int64()), pa.array(values)]
            file.write_batch(pa.record_batch(columns, schema=schema))


def _full(messages: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    size = 0
    for message in messages:
        batch.append(message)
        size += len(message[1])
        if len(batch) == MOST or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _kept(path: Path) -> list[pa.Table]:
    with ipc.open_file(str(path)) as file:
        return [pa.Table.from_batches([file.get_batch(n)]) for n in range(file.num_record_batches)]
