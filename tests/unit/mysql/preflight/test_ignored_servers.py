"""Transactions of ignored server ids are skipped and counted, and move the position."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from connector.config.filters import Filters
from connector.config.source import Source
from connector.errors import Unsupported
from connector.log.ids import Epoch, Outcome, Seqno
from connector.log.transaction.batch import PositionAdvance, Statement, TransactionBatch
from connector.log.transaction.definition import Redefined
from connector.log.transaction.position import Digest, Finished, SourcePosition
from connector.log.transaction.xa import Decided, Prepared
from connector.mysql.binlog.events.column_names import NumberingResolver
from connector.mysql.binlog.events.query import Query
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.reader import BinlogReader, FileBytes
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import changes, row_changes, whole_file
from tests.support.binlog_writer import ColumnDef, LogWriter, image
from tests.unit.mysql.binlog.test_statements import executes, insert_id
from tests.unit.mysql.binlog.test_xa import NAME, XID, xa

INT = ColumnDef(3, unsigned=False)
SOURCE = uuid.UUID(int=7)
OTHER = 77
IGNORING = Filter(Filters(), ignored_servers=frozenset({OTHER}))
KEEPING = Filter(Filters(), keeps_statements=True, ignored_servers=frozenset({OTHER}))


def gtid(number: int) -> str:
    return f"{SOURCE}:{number}"


def write(log: LogWriter, number: int, server: int = 1, *, metadata: str = "FULL", tagless: bool = False) -> LogWriter:
    """A transaction that inserts its own number."""
    log.server_id = server
    if not tagless:
        log.gtid(SOURCE, number)
    log.begin()
    log.table_map([INT], metadata=metadata)
    log.rows(30, 1, image([struct.pack("<i", number)]))
    log.commit()
    return log


def read(log: LogWriter, folder: Path, filters: Filter = IGNORING) -> list[object]:
    path = folder / "log.000001"
    path.write_bytes(log.data)
    return [*whole_file(path, filters=filters)]


def told(found: list[object]) -> list[tuple[str, int]]:
    """What became of each transaction: rows or passed, and its GTID's number."""
    result = []
    for item in found:
        if isinstance(item, PositionAdvance):
            result.append(("passed", int((item.gtid or ":0").rpartition(":")[2])))
        else:
            assert isinstance(item, TransactionBatch)
            ((_, _, after),) = row_changes([item], "t")
            assert after is not None
            assert item.begin is not None
            assert item.begin.gtid in (None, gtid(after[0]))
            result.append(("rows", after[0]))
    return result


def counted(server: int = OTHER) -> float:
    name = "thl_ignored_transactions_total"
    return REGISTRY.get_sample_value(name, {"service": "test", "server_id": str(server)}) or 0


def test_transactions_of_ignored_servers_are_skipped_with_their_gtids_and_counted(tmp_path: Path) -> None:
    log = write(write(write(LogWriter(), 1), 2, OTHER), 3)
    before, second = counted(), len(write(write(LogWriter(), 1), 2).data)
    found = read(log, tmp_path)
    assert told(found) == [("rows", 1), ("passed", 2), ("rows", 3)]
    passed = found[1]
    assert isinstance(passed, PositionAdvance)
    assert passed.end == SourcePosition("log.000001", second)
    assert counted() == before + 1


def test_rows_of_ignored_servers_are_not_decoded(tmp_path: Path) -> None:
    assert told(read(write(LogWriter(), 1, OTHER, metadata="NONE"), tmp_path)) == [("passed", 1)]
    with pytest.raises(Unsupported) as refused:
        read(write(LogWriter(), 1, metadata="NONE"), tmp_path)
    assert "binlog_row_metadata" in refused.value.hint


@given(st.lists(st.sampled_from([1, 2, 3]), max_size=12), st.frozensets(st.integers(1, 3)), st.booleans())
def test_transactions_of_other_servers_are_published(
    servers: list[int], ignored: frozenset[int], tagless: bool
) -> None:
    log = LogWriter()
    for number, server in enumerate(servers, 1):
        write(log, number, server, tagless=tagless)
    with TemporaryDirectory() as folder:
        found = told(read(log, Path(folder), Filter(Filters(), ignored_servers=ignored)))
    expected = [("passed", number * (not tagless)) if server in ignored else ("rows", number)
                for number, server in enumerate(servers, 1)]  # fmt: skip
    assert found == expected


def test_statement_of_an_ignored_server_is_skipped_with_its_values(tmp_path: Path) -> None:
    log = LogWriter()
    log.server_id = OTHER
    log.begin()
    insert_id(log, 41)
    log.query(b"INSERT INTO t VALUES (1)")
    log.commit()
    insert_id(log, 42)
    log.query(b"INSERT INTO t VALUES (2)")
    assert [type(item) for item in read(log, tmp_path)] == [PositionAdvance, PositionAdvance]

    log.server_id = 1
    log.begin()
    log.query(b"INSERT INTO t VALUES (3)")
    log.commit()
    (statement,) = changes(item for item in read(log, tmp_path, KEEPING) if isinstance(item, TransactionBatch))
    assert isinstance(statement, Statement)
    assert statement.sql == "INSERT INTO t VALUES (3)"
    assert "insert_id" not in statement.options


def test_load_data_file_of_an_ignored_server_is_dropped(tmp_path: Path) -> None:
    log = LogWriter()
    for server in (OTHER, 1):  # the same file id again
        log.server_id = server
        log.begin()
        log.event(17, struct.pack("<I", 5) + b"a\nb\n" + bytes([server]))
        log.event(18, executes(5, b"LOAD DATA INFILE 'f' INTO TABLE t", start=9, end=20))
        log.commit()
    passed, kept = read(log, tmp_path, KEEPING)
    assert isinstance(passed, PositionAdvance)
    assert isinstance(kept, TransactionBatch)
    block, statement = changes([kept])
    assert isinstance(block, Statement)
    assert isinstance(statement, Statement)
    assert statement.sql.startswith("LOAD DATA")


class Following(NumberingResolver):
    """A history of tables that every definition changes."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def follow(self, query: Query, gtid: str | None, place: SourcePosition) -> bool:
        self.told.append(query.statement.sql)
        return True


def test_definitions_of_ignored_servers_update_the_table_history(tmp_path: Path) -> None:
    log = LogWriter()
    log.server_id = OTHER
    log.gtid(SOURCE, 1)
    log.query(b"ALTER TABLE t ADD x INT")
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)
    naming = Following()
    source = FileBytes(path.open("rb", buffering=0))
    reader = BinlogReader(source, EventFrames(), filters=IGNORING, service="test", batch_bytes=9, resolver=naming)
    found = [item for _ in range(3) for item in reader.read()]
    reader.close()
    assert [type(item) for item in found] == [PositionAdvance, Redefined]
    assert naming.told == ["ALTER TABLE t ADD x INT"]


def test_xa_transaction_is_ignored_by_the_server_of_its_prepare(tmp_path: Path) -> None:
    log = LogWriter()
    before = counted()
    log.server_id = OTHER
    xa(log, 1, 2)
    log.server_id = 1
    log.query(b"XA COMMIT " + XID)
    xa(log, 3)
    log.server_id = OTHER
    log.query(b"XA COMMIT " + XID)
    xa(log, 4, one_phase=True)
    nothing, first, kept, second, one_phase = read(log, tmp_path)
    for item, found in ((nothing, []), (kept, [("INSERT", None, [3])])):
        assert isinstance(item, Prepared)
        assert row_changes([item.batch], "t") == found
    for item in (first, second):
        assert isinstance(item, Decided)
        assert (item.xid, item.ending.outcome) == (NAME, Outcome.COMMIT)
    assert isinstance(one_phase, PositionAdvance)
    assert counted() == before + 2


@pytest.mark.parametrize("tagless", [False, True])
def test_last_event_of_the_log_is_compared_even_if_of_an_ignored_server(tmp_path: Path, tagless: bool) -> None:
    log = write(LogWriter(), 1, OTHER, tagless=tagless)
    start = len(log.data)
    write(write(log, 2, OTHER, tagless=tagless), 3, OTHER, tagless=tagless)
    last = Finished(
        seqno=Seqno(1),
        epoch=Epoch(1),
        event_id="log.000001:0000000000000500;7",
        gtid=None if tagless else gtid(2),
        digest=Digest(1, 1, 1),
        start=SourcePosition("log.000001", start),
    )
    found = told(read(log, tmp_path, IGNORING.including(last)))
    assert [what for what, _ in found] == ["passed", "rows", "passed"]
    assert [what for what, _ in told(read(log, tmp_path))] == ["passed"] * 3  # the filter itself is as it was


def test_own_server_id_is_ignored() -> None:
    assert Filter.of(Source(server_id=9, ignore_server_ids=(3, 4))).ignored_servers == {3, 4, 9}
    assert Filter(Filters()).ignored_servers == frozenset()
