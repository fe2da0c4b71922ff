"""`python -m tests.bench.completion`: what it costs to complete partial images from a record store, without servers.

Rows of ten columns and about 200 bytes are loaded into a store. Then transactions of ten updates with MINIMAL images
are completed and encoded, of keys from 1 % of the rows (hot) and from all, and the same with FULL images, without a
store and with one.

With `--memory` the store reads and writes by direct I/O, past the system's cache of files: only so many MB of it are in
memory, half of them rows, half blocks. Keys from all rows are cold then, if the store is larger; the program looks at
that. What lies below the system, such as the cache of a virtual machine's host, is not seen from here.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from connector.log.format import avro
from connector.log.ids import Action, Epoch, Kind, LogId, Outcome, Seqno
from connector.log.transaction.batch import Rows, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SourcePosition
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.producer.records.completion import EventCompleter
from connector.records.database import READERS, Database
from connector.records.versions import Versions
from tests.bench.records import memory, written_bytes

NAME: Final = TableName("shop", "orders")
LAYOUT: Final = TableLayout(
    NAME,
    (Column("id", "bigint", nullable=False), *(Column(f"c{n}", "varchar(40)", charset="utf8mb4") for n in range(9))),
    (0,),
)
KEY_BITS: Final = b"\x01\x00"
CHANGED_BITS: Final = b"\x02\x00"  # the first text
EVENT: Final = 10  # rows of a transaction
READ: Final = 100  # transactions that the producer reads at once
LOADED: Final = 5000  # rows of an event of the load
TEXTS: Final = [avro.union("".join(random.Random(n).choices("abcdefghij klmnop", k=20))) for n in range(997)]


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--changes", default=300_000, show_default=True)
@click.option("--cache", default=64, show_default=True, help="MB of source.records.cache_bytes.")
@click.option("--memory", "held", type=int, help="Direct I/O, so many MB of the store in memory; not --cache.")
@click.option("--readers", default=READERS, show_default=True, help="Threads that read from the disk.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="On the disk to measure.")
def main(*, rows: int, changes: int, cache: int, held: int | None, readers: int, folder: Path | None) -> None:
    """Measure."""
    cache = cache if held is None else held // 2
    place = Path(tempfile.mkdtemp(prefix="completion-", dir=folder))
    try:
        rng = random.Random(3)
        measured("FULL, no store", place, encoder(None), updates(rng, rows, changes, whole=True), changes)
        database = Database(place, cache_bytes=cache << 20, direct=held is not None, readers=readers)
        versions = Versions(database, LogId("0" * 32), horizon=1_000_000, cache_bytes=cache << 20)
        made = encoder(EventCompleter(versions))
        measured("load", place, made, loads(rows), rows)
        versions.flush(sync=True)
        if held is not None and versions.size < 2 * held << 20:
            raise click.ClickException(f"the store has {versions.size >> 20} MB: too few for a cold one")
        for name, keys in {"hot": rows // 100, "all keys" if held is None else "cold": rows}.items():
            measured(f"{name}, FULL", place, made, updates(rng, keys, changes, whole=True), changes)
            measured(f"{name}, MINIMAL", place, made, updates(rng, keys, changes, whole=False), changes)
        versions.close()
    finally:
        shutil.rmtree(place)


def encoder(completion: EventCompleter | None) -> Encoder:
    """An encoder, with a store or without."""
    made = Encoder(
        service="s", source_id="db:3306", partitions=1, limits=Limits(fragment=1 << 16, shard=1 << 22, message=1 << 20)
    )
    made.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=Seqno(-1)))
    made.completion = completion
    return made


def measured(name: str, folder: Path, made: Encoder, batches: Iterator[list[TransactionBatch]], rows: int) -> None:
    """Print the figures of encoding batches, without making them."""
    seconds = cpu = 0.0
    written = written_bytes()
    for batch in batches:
        began, used = time.perf_counter(), time.process_time()
        if made.completion is not None:
            made.completion.prefetch(batch)
        made.encode_on(batch, 0, 1 << 40, [])
        seconds += time.perf_counter() - began
        cpu += time.process_time() - used
    figures = {
        "rows/s": round(rows / seconds),
        "CPU µs/row": round(cpu / rows * 1e6, 2),
        "written B/row": round((written_bytes() - written) / rows),
        "disk MB": sum(path.stat().st_blocks for path in folder.iterdir()) * 512 // 10**6,
        **memory(),
    }
    print(f"{name:22}", figures, flush=True)


def loads(rows: int) -> Iterator[list[TransactionBatch]]:
    """The load of the table."""
    yield [event([], Kind.LOAD, **LoadEvent("l", Part.BEGIN, NAME).metadata())]
    for first in range(0, rows, LOADED):
        numbers = range(first, min(first + LOADED, rows))
        data, ends = bytearray(), array("Q")
        for number in numbers:
            data += b"\0" + whole_image(number, 0)
            ends.append(len(data))
        read = Rows(LAYOUT, Action.READ, bytes(data), ends)
        yield [event([read], Kind.LOAD, **LoadEvent("l", Part.ROWS, NAME).metadata())]


def updates(rng: random.Random, keys: int, count: int, *, whole: bool) -> Iterator[list[TransactionBatch]]:
    """Transactions of updates."""
    for turn in range(count // (EVENT * READ)):
        batches = []
        for _ in range(READ):
            data, ends = bytearray(), array("Q")
            for number in {rng.randrange(keys) for _ in range(EVENT)}:
                if whole:
                    data += whole_image(number, turn) + whole_image(number, turn + 1)
                else:
                    key, text = avro.union(number), TEXTS[(number + turn) % len(TEXTS)]
                    data += b"\2" + avro.array([key]) + b"\2" + avro.array([text])
                ends.append(len(data))
            bits = (b"", b"") if whole else (KEY_BITS, CHANGED_BITS)
            batches.append(event([Rows(LAYOUT, Action.UPDATE, bytes(data), ends, *bits)]))
        yield batches


def whole_image(number: int, turn: int) -> bytes:
    """An image with all columns."""
    texts = [TEXTS[(number + turn * (n == 0) + n * 7) % len(TEXTS)] for n in range(9)]
    return b"\2" + avro.array([avro.union(number), *texts])


def event(changes: Sequence[Rows], kind: Kind = Kind.TRANSACTION, **metadata: str) -> TransactionBatch:
    """A whole transaction."""
    place = SourcePosition("mysql-bin.000001", 4)
    begin = TransactionStart(1, 1, None, 0, 0, place, kind, metadata)
    return TransactionBatch(begin, list(changes), TransactionEnd(place, 0, Outcome.COMMIT))


if __name__ == "__main__":
    main()
