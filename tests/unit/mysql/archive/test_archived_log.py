"""Files of an archive in order, then the stream: nothing twice, nothing missing."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.errors import PreflightError
from connector.log.gtid.mysql import GtidSet
from connector.log.gtid.source_gtids import Gtids
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.batch import PositionAdvance, Rows, TransactionBatch
from connector.log.transaction.position import AfterGtids, Digest, Finished, StreamStart
from connector.log.transaction.source_position import SourcePosition
from connector.mysql.archive.archive import Archive
from connector.mysql.archive.archived_log import ArchivedLog, holds
from connector.mysql.binlog.byte_source import ByteSource
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.log_files import LogFile
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.server.gtid_set import encode_gtid_set
from tests.support.binlog import ALL, images
from tests.support.binlog_command import INT, UUID, gtid
from tests.support.binlog_writer import LogWriter, image

SERVER = str(uuid.UUID(bytes=UUID))
Opened = list[tuple[str, str]]


def transaction(log: LogWriter, number: int, *rows: int, known: bool = True) -> int:
    """A transaction with these rows; returns where it begins."""
    start = len(log.data)
    if known:
        gtid(log, number)
    log.begin()
    log.table_map([INT])
    log.rows(30, 1, b"".join(image([row.to_bytes(4, "little")]) for row in rows))
    log.commit()
    return start


def file(folder: Path, number: int, *transactions: int, known: bool = True) -> list[int]:
    """One file: for each number a transaction of two rows, 10 × the number and one more."""
    log = LogWriter()
    starts = [transaction(log, one, 10 * one, 10 * one + 1, known=known) for one in transactions]
    (folder / f"log.{number:06}").write_bytes(log.data)
    return starts


class Reading:
    """An archive that is read, and the starts at which streams were opened."""

    def __init__(self, folder: Path, start: StreamStart, *, live: bool = True, decode_all: bool = False) -> None:
        self.opened: Opened = []
        self.live: list[StreamStart] = []
        self._decode_all = decode_all
        self.closed = 0
        archive = Archive(folder)
        first = start.file if isinstance(start, SourcePosition) else archive.files()[0].name
        named = next(one for one in archive.files() if one.name == first)
        self.log = ArchivedLog(archive, start, named, self._open, self._live if live else None)

    def _open(self, source: ByteSource, file: LogFile, known: Gtids | None) -> BinlogReader:
        self.opened.append((file.name, str(known)))
        return BinlogReader(
            source,
            EventFrames(),
            filters=ALL,
            service="t",
            batch_bytes=1,
            file=file.name,
            known=None if self._decode_all else known,
        )

    def _live(self, start: StreamStart) -> BinlogReader:
        self.live.append(start)
        return Silent()  # type: ignore[return-value]

    def rows(self, between: Callable[[], None] = lambda: None) -> list[int]:
        """Every row up to the archive's end; `between` is called when the first came."""
        found: list[int] = []
        for _ in range(100):
            for item in self.log.read(0):
                part = item
                if isinstance(part, TransactionBatch):
                    for change in part.changes:
                        assert isinstance(change, Rows)
                        found += [after[0] for _, after in images(change) if after]
                    between()
            if self.live or self.log.ended:
                return found
        raise AssertionError("it does not end")


class Silent:
    """A stream that says nothing."""

    ended = False
    closed = False

    def read(self, timeout: float) -> list[PositionAdvance]:
        del timeout
        return [PositionAdvance(SourcePosition("log.000009", 4), f"{SERVER}:1")]

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("decode_all", [False, True])
def test_known_gtids_are_skipped_and_the_stream_continues_after_the_archive(tmp_path: Path, decode_all: bool) -> None:
    file(tmp_path, 1, 1, 2)
    file(tmp_path, 2, 3, 4)
    reading = Reading(tmp_path, AfterGtids(f"{SERVER}:1:3"), decode_all=decode_all)
    assert reading.rows() == [20, 21, 40, 41]
    assert reading.opened == [("log.000001", f"{SERVER}:1:3"), ("log.000002", f"{SERVER}:1:3")]
    assert reading.live == [AfterGtids(f"{SERVER}:1-4")]
    # What the stream gives is not looked at: the server leaves out what is known.
    assert reading.log.read(0) == [PositionAdvance(SourcePosition("log.000009", 4), f"{SERVER}:1")]


def test_without_gtids_reading_begins_at_the_offset_and_continues_at_the_next_file(tmp_path: Path) -> None:
    _, second = file(tmp_path, 1, 1, 2)
    file(tmp_path, 2, 3)
    reading = Reading(tmp_path, SourcePosition("log.000001", second))
    assert reading.rows() == [20, 21, 30, 31]
    assert reading.opened == [("log.000001", "None"), ("log.000002", "None")]
    assert reading.live == [SourcePosition("log.000003", 4)]


def test_file_added_while_reading_is_read(tmp_path: Path) -> None:
    file(tmp_path, 1, 1)
    reading = Reading(tmp_path, AfterGtids(f"{SERVER}:9"))
    assert reading.rows(lambda: file(tmp_path, 2, 2) and None) == [10, 11, 20, 21]


def test_without_a_stream_reading_ends_with_the_files(tmp_path: Path) -> None:
    file(tmp_path, 1, 1)
    reading = Reading(tmp_path, SourcePosition("log.000001", 4), live=False)
    assert reading.rows() == [10, 11]
    assert (reading.log.ended, reading.log.read(0)) == (True, [])
    reading.log.close()


@pytest.mark.parametrize("decode_all", [False, True])
def test_skipped_transactions_count_as_read(tmp_path: Path, decode_all: bool) -> None:
    """A transaction that has nothing for us; twice it is the same one."""
    log = LogWriter()
    for number in (5, 6, 5):
        gtid(log, number)
        log.begin()
        log.commit()
    (tmp_path / "log.000001").write_bytes(log.data)
    reading = Reading(tmp_path, AfterGtids(f"{SERVER}:6"), decode_all=decode_all)
    found = [item.gtid for item in reading.log.read(0) if isinstance(item, PositionAdvance)]
    assert found == [f"{SERVER}:5"]
    reading.rows()
    assert reading.live == [AfterGtids(f"{SERVER}:5-6")]


def test_transaction_without_a_gtid_among_others_is_refused(tmp_path: Path) -> None:
    log = LogWriter()
    transaction(log, 1, 10)
    place = transaction(log, 0, 20, known=False)
    (tmp_path / "log.000001").write_bytes(log.data)
    reading = Reading(tmp_path, AfterGtids(f"{SERVER}:1"))
    with pytest.raises(PreflightError) as raised:
        reading.rows()
    assert raised.value.where["at"] == SourcePosition("log.000001", place)


def test_failed_reader_leaves_no_file_open(tmp_path: Path) -> None:
    file(tmp_path, 1, 1)
    sources: list[ByteSource] = []

    def fail(source: ByteSource, file: LogFile, known: Gtids | None) -> BinlogReader:
        del file, known
        sources.append(source)
        raise PreflightError("no")

    archive = Archive(tmp_path)
    with pytest.raises(PreflightError):
        ArchivedLog(archive, SourcePosition("log.000001", 4), archive.files()[0], fail, None)
    with pytest.raises(ValueError):
        sources[0].receive(memoryview(bytearray(9)), 0)


def test_closed_log_returns_nothing(tmp_path: Path) -> None:
    file(tmp_path, 1, 1)
    reading = Reading(tmp_path, SourcePosition("log.000001", 4))
    reading.log.close()
    reading.log.close()
    assert reading.log.read(0) == []


def finished(known: str | None, file: str) -> Finished:
    return Finished(
        seqno=Seqno(1),
        epoch=Epoch(1),
        event_id="x",
        gtid=known,
        digest=Digest(0, 0, 0),
        start=SourcePosition(file, 4),
    )


def test_archive_holds_events_from_its_first_file_on(tmp_path: Path) -> None:
    log = LogWriter()
    (tmp_path / "log.000002").write_bytes(log.data)
    assert not holds(Archive(tmp_path), finished(None, "log.000001"))
    assert holds(Archive(tmp_path), finished(None, "log.000002"))
    log.event(35, encode_gtid_set(GtidSet.parse(f"{SERVER}:1-7")))
    (tmp_path / "log.000002").write_bytes(log.data)
    assert not holds(Archive(tmp_path), finished(f"{SERVER}:7", "log.000002"))
    assert holds(Archive(tmp_path), finished(f"{SERVER}:8", "log.000001"))
