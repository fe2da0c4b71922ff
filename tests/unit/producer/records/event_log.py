"""A log of events that are completed, and the rows of its table: what the tests of the record store share."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from connector.clock import SystemClock
from connector.config.source import Source
from connector.log.epochs.control import ControlState, EpochRecord, LogRecord
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.format import avro
from connector.log.ids import Action, Epoch, Kind, LogId, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SourcePosition
from connector.mysql.transforms.filters import capture_of
from connector.producer.loads.known_loads import KnownLoads
from connector.producer.records.completion import EventCompleter
from connector.producer.records.conversion import split, value_of
from connector.producer.records.filter_history import FilterHistory
from connector.records.database import Database
from connector.records.versions import Versions
from tests.support.log_objects import epochs

LOG = LogId("b" * 32)


NAME = TableName("shop", "t")


CREATE = "CREATE TABLE shop.t (id INT NOT NULL PRIMARY KEY, a INT DEFAULT 5, v VARCHAR(20) CHARSET utf8mb4 DEFAULT 'd')"


LAYOUT = TableLayout(
    NAME,
    (
        Column("id", "int", nullable=False),
        Column("a", "int"),
        Column("v", "varchar(20)", charset="utf8mb4"),
    ),
    (0,),
)


Image = dict[int, Any] | None


class Log:
    """Gives events to a completion, and keeps what comes out."""

    def __init__(self, folder: Path, partial: Sequence[str] = (), epochs: Sequence[EpochRecord] = ()) -> None:
        self.folder = folder
        self.partial = partial
        self.epochs = epochs
        self.epoch = 1
        self.seqno = 0
        self.open()

    def open(self) -> None:
        database = Database(self.folder, cache_bytes=1 << 20)
        versions = Versions(database, LOG, horizon=1_000_000, cache_bytes=1 << 20)
        self.completion = EventCompleter(versions, self.partial, FilterHistory(self.epochs), service="shop")

    def event(self, *changes: Rows | Statement, kind: Kind = Kind.TRANSACTION, **metadata: str) -> list[Any]:
        end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
        begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), kind, metadata)
        given = TransactionBatch(begin, list(changes), end)
        found = self.completion.complete(given, Seqno(self.seqno), Epoch(self.epoch))
        self.seqno += 1
        return found.changes

    def close(self) -> None:
        self.completion.close()

    def ddl(self, sql: str, **options: str) -> None:
        self.event(Statement("shop", sql, options), kind=Kind.DDL)

    def load(self, part: Part, *changes: Rows | Statement, load: str = "l1") -> list[Any]:
        return self.event(*changes, kind=Kind.LOAD, **LoadEvent(load, part, NAME).metadata())


def rows(action: Action, *images: tuple[Image, Image], layout: TableLayout = LAYOUT) -> Rows:
    """Rows of one change: the columns of all before images are the same, and of all after images."""
    data, ends = bytearray(), array("Q")
    for before, after in images:
        for image in (before, after):
            data += b"\0" if image is None else b"\2" + avro.array(avro.union(image[at]) for at in sorted(image))
        ends.append(len(data))
    return Rows(layout, action, bytes(data), ends, bits(images[0][0], layout), bits(images[0][1], layout))


def bits(image: Image, layout: TableLayout) -> bytes:
    if image is None or len(image) == len(layout.columns):
        return b""
    return bytes([sum(1 << at for at in image)])


def values(found: Rows) -> list[tuple[list[Any] | None, list[Any] | None]]:
    """The images of whole rows."""
    assert not (found.before or found.after)
    width, start, result = len(found.layout.columns), 0, []
    for end in found.ends:
        record, at, images = bytes(found.data[start:end]), 0, []
        for _ in range(2):
            if record[at] == 0:
                images.append(None)
                at += 1
                continue
            assert record[at : at + 2] == b"\2" + avro.long(width)
            size = next(size for size in range(at + 2, len(record) + 1) if _is_content(record[at + 2 : size], width))
            images.append([value_of(one) for one in split(record[at + 2 : size], width)])
            assert record[size] == 0
            at = size + 1
        assert at == len(record)
        result.append((images[0], images[1]))
        start = end
    return result


def _is_content(data: bytes, width: int) -> bool:
    try:
        return len(split(data, width)) == width
    except (ValueError, IndexError):
        return False


def insert(*given: dict[int, Any]) -> Rows:
    return rows(Action.INSERT, *((None, one) for one in given))


def update(*given: tuple[dict[int, Any], dict[int, Any]]) -> Rows:
    return rows(Action.UPDATE, *given)


def delete(*given: dict[int, Any]) -> Rows:
    return rows(Action.DELETE, *((one, None) for one in given))


def filtered(*captured: dict[str, Any]) -> list[EpochRecord]:
    """An epoch for each of the filters."""
    return [
        replace(made, capture=capture_of(Source.model_validate({"filters": filters})))
        for made, filters in zip(epochs(*range(len(captured))), captured, strict=True)
    ]


MASK = {"tables": [{"match": ["shop.t"], "mask": {"v": {"fixed": "x"}}}]}


def known(*, asked: str = "l1", cancel: bool = False, state: LoadState | None = LoadState.LOADING) -> KnownLoads:
    """The loads of a producer: one of the table that was asked for, and the state of the load l1."""
    requests = {NAME: LoadRequest(table=NAME, load=asked, asked_at=1, asked_by="me", cancel=cancel)}
    states = {NAME: TableLoad(table=NAME, load="l1", state=state, begin=Seqno(1), last=Seqno(1))} if state else {}
    made = KnownLoads("shop", SystemClock())
    made.restore(ControlState(LogRecord(LOG, 1), None, (), load_requests=requests, loads=states))
    return made
