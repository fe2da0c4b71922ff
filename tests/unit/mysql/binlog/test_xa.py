"""XA transactions in the binary log: prepared, committed in one phase, decided later."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from connector.config.filters import Filters
from connector.errors import ConnectorError, CorruptBinlog, Unsupported
from connector.log.ids import Outcome
from connector.log.transaction.batch import PositionAdvance, TransactionBatch
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.xa import Decided, Logged, Prepared, end_of
from connector.mysql.binlog.events.xa import xa_prepare, xa_statement
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import row_changes, whole_file
from tests.support.binlog_writer import ColumnDef, LogWriter, image, read_back

INT = ColumnDef(3, unsigned=False)
XID = b"X'6162',X'',1"
NAME = XID.decode()


def body(xid: tuple[bytes, bytes, int] = (b"ab", b"", 1), *, one_phase: bool = False) -> bytes:
    gtrid, bqual, form = xid
    return struct.pack("<BIII", one_phase, form, len(gtrid), len(bqual)) + gtrid + bqual


def xa(log: LogWriter, *numbers: int, one_phase: bool = False) -> LogWriter:
    log.query(b"XA START " + XID)
    for number in numbers:
        log.table_map([INT])
        log.rows(30, 1, image([struct.pack("<i", number)]))
    log.query(b"XA END " + XID)
    log.event(38, body(one_phase=one_phase))
    return log


def numbers(piece: TransactionBatch) -> list[object]:
    return [after[0] for _, _, after in row_changes([piece], "t") if after]


def in_small_pieces(log: LogWriter, folder: Path, *, filters: Filter | None = None) -> list[Logged]:
    path = folder / "log.000001"
    path.write_bytes(log.data)
    return whole_file(path, batch_bytes=1, **({"filters": filters} if filters else {}))


def test_prepared_transaction_is_marked(tmp_path: Path) -> None:
    log = xa(LogWriter(), 1, 2)
    end = len(log.data)
    (found,) = read_back(log, tmp_path)
    assert isinstance(found, Prepared)
    assert (found.xid, found.one_phase) == (NAME, False)
    assert numbers(found.batch) == [1, 2]
    assert found.batch.begin is not None
    assert found.batch.begin.metadata["xid"] == NAME
    assert end_of(found) == SourcePosition("log.000001", end)


def test_batches_of_a_prepared_transaction_are_marked_from_the_first(tmp_path: Path) -> None:
    found = in_small_pieces(xa(LogWriter(), 1, 2), tmp_path)
    assert all(isinstance(item, Prepared) and not item.one_phase for item in found)
    pieces = [item.batch for item in found if isinstance(item, Prepared)]
    assert [numbers(piece) for piece in pieces] == [[1], [2], []]
    assert [piece.begin is not None for piece in pieces] == [True, False, False]
    assert [piece.ending is not None for piece in pieces] == [False, False, True]
    assert [end_of(item) is not None for item in found] == [False, False, True]


def test_one_phase_commit_is_an_ordinary_transaction(tmp_path: Path) -> None:
    (found,) = read_back(xa(LogWriter(), 1, one_phase=True), tmp_path)
    assert isinstance(found, TransactionBatch)
    assert found.ending is not None
    assert found.ending.outcome is Outcome.COMMIT
    *_, last = in_small_pieces(xa(LogWriter(), 1, one_phase=True), tmp_path)
    assert isinstance(last, Prepared)
    assert last.one_phase


def test_prepared_transaction_without_captured_rows_is_reported(tmp_path: Path) -> None:
    none = Filter(Filters(ignore=("s",)))
    (found,) = in_small_pieces(xa(LogWriter(), 1), tmp_path, filters=none)
    assert isinstance(found, Prepared)
    assert (found.batch.changes, found.batch.begin is None, found.batch.ending is None) == ([], False, False)
    (found,) = in_small_pieces(xa(LogWriter(), 1, one_phase=True), tmp_path, filters=none)
    assert isinstance(found, PositionAdvance)


@pytest.mark.parametrize("outcome", [Outcome.COMMIT, Outcome.ROLLBACK])
def test_xa_commit_and_rollback_are_transactions(tmp_path: Path, outcome: Outcome) -> None:
    log = xa(LogWriter(), 1)
    start = len(log.data)
    log.query(b"XA " + outcome.name.encode() + b" " + XID)
    _, found = read_back(log, tmp_path)
    assert isinstance(found, Decided)
    assert (found.xid, found.ending.outcome) == (NAME, outcome)
    assert (found.begin.start.offset, found.ending.end.offset) == (start, len(log.data))
    assert found.begin.thread_id == 7


@pytest.mark.parametrize("ends", ["another end", "another prepare", "xid", "commit", "no start", "start"])
def test_contradicting_xa_events_are_corrupt(tmp_path: Path, ends: str) -> None:
    log = LogWriter()
    if ends != "no start":
        log.query(b"XA START " + XID)
    match ends:
        case "another end":
            log.query(b"XA END X'63',X'',1")
        case "another prepare":
            log.event(38, body((b"c", b"", 1)))
        case "xid":
            log.commit()
        case "commit":
            log.query(b"XA COMMIT " + XID)
        case "no start":
            log.event(38, body())
        case "start":
            log.query(b"XA START " + XID)
    with pytest.raises(CorruptBinlog):
        read_back(log, tmp_path)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (body((b"ab", b"\xff", 7)), ("X'6162',X'ff',7", False)),
        (body(one_phase=True), (NAME, True)),
        (body((b"", b"", 0)), ("X'',X'',0", False)),
    ],
)
def test_xid_of_the_event_equals_that_of_statements(event: bytes, expected: tuple[str, bool]) -> None:
    assert xa_prepare(event) == expected


@pytest.mark.parametrize("event", [b"", body()[:-1], struct.pack("<BIII", 0, 1, 65, 0) + bytes(65)])
def test_xa_event_of_wrong_lengths_is_corrupt(event: bytes) -> None:
    with pytest.raises(CorruptBinlog):
        xa_prepare(event)


@pytest.mark.parametrize(
    "sql",
    ["XA COMMIT X'61',X'',1 ONE PHASE", "XA RECOVER", "XA START 'a'", "XA PREPARE X'61',X'',1", "XA COMMIT X'6',1"],
)
def test_unknown_xa_statement_is_refused(sql: str) -> None:
    with pytest.raises(Unsupported) as caught:
        xa_statement(sql)
    assert isinstance(caught.value, ConnectorError)
    assert caught.value.where["sql"] == sql
