"""Logs of old versions, relay logs, and files with several formats."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from pathlib import Path

import pytest

from connector.config.filters import Filters
from connector.errors import ConnectorError, CorruptBinlog, Unsupported
from connector.log.ids import Kind
from connector.log.transaction.batch import PositionAdvance, Statement, TransactionBatch
from connector.mysql.binlog.log_files import LogFile
from connector.mysql.binlog.log_reader import LogReading, read_log
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import changes, row_changes, whole_file
from tests.support.binlog_writer import POST_HEADERS, ColumnDef, LogWriter, image
from tests.support.old_log import TIME, OldLog, described, event, load_body

RELAY = Path("tests/testdata/binlog/relay.000005")
KEEPING = Filter(Filters(), keeps_statements=True)
INT = ColumnDef(3, unsigned=False)
ONE = image([struct.pack("<i", 1)])
INTVAR = struct.pack("<BQ", 2, 41)


def read(data: bytes, folder: Path, name: str = "log.001") -> list[TransactionBatch | PositionAdvance]:
    path = folder / name
    path.write_bytes(data)
    return whole_file(path, filters=KEEPING)


def said(found: list[TransactionBatch | PositionAdvance]) -> list[tuple[str, str | None]]:
    return [(change.sql, change.options.get("insert_id")) for change in changes(found) if isinstance(change, Statement)]


@pytest.mark.parametrize("version", [1, 3])
def test_statements_of_3_23_and_4_are_read_with_their_positions(tmp_path: Path, version: int) -> None:
    log = OldLog(version)
    created = log.query(b"CREATE TABLE t (a INT)")
    first = log.event(5, INTVAR)
    log.query(b"INSERT INTO t VALUES (NULL, '\xe9')")
    begun = log.query(b"BEGIN", place=4)
    log.query(b"DELETE FROM t", place=4)
    log.query(b"COMMIT", place=4)
    end = len(log.data)
    log.event(4, b"log.002" if version == 1 else struct.pack("<Q", 4) + b"log.002")
    found = read(log.data, tmp_path)

    assert said(found) == [
        ("CREATE TABLE t (a INT)", None),
        ("INSERT INTO t VALUES (NULL, '\u00e9')", "41"),
        ("DELETE FROM t", None),
    ]
    pieces = [item for item in found if isinstance(item, TransactionBatch)]
    assert [piece.begin and (piece.begin.kind, piece.begin.start.offset) for piece in pieces] == [
        (Kind.DDL, created),
        (Kind.TRANSACTION, first),
        (Kind.TRANSACTION, begun),
    ]
    assert pieces[-1].ending is not None
    assert pieces[-1].ending.end.offset == end
    last = found[-1]
    assert isinstance(last, PositionAdvance)
    assert (last.end.file, last.end.offset) == ("log.002", 4)


def test_last_event_of_version_1_may_be_shorter_than_a_current_header(tmp_path: Path) -> None:
    log = OldLog(1)
    log.query(b"INSERT INTO t VALUES (1)")
    log.event(3, b"")  # STOP
    assert len(said(read(log.data, tmp_path))) == 1
    with pytest.raises(CorruptBinlog) as raised:
        read(log.data[:-1], tmp_path)
    assert raised.value.where == {"file": "log.001", "pos": len(log.data) - 13}  # the cut event


def test_session_variables_of_4_1_belong_to_the_next_statement(tmp_path: Path) -> None:
    log = OldLog()
    at = log.query(b"SET ONE_SHOT CHARACTER_SET_CLIENT=33,COLLATION_CONNECTION=33,TIME_ZONE='Europe/Berlin'")
    log.query("INSERT INTO t VALUES ('\u00e9')".encode())
    (piece,) = read(log.data, tmp_path)
    assert isinstance(piece, TransactionBatch)
    assert piece.begin is not None
    assert piece.begin.start.offset == at
    (change,) = piece.changes
    assert isinstance(change, Statement)
    assert change.sql.endswith("('\u00e9')")
    assert change.options["time_zone"] == "Europe/Berlin"
    assert change.options["collation_connection"] == "33"


@pytest.mark.parametrize(
    ("start", "error", "fields"),
    [
        (OldLog(2).data, Unsupported, {"version": 2}),
        (OldLog(5).data, Unsupported, {"version": 5}),
        (OldLog(1).data[:17] + b"\x03" + OldLog(1).data[18:], Unsupported, {"version": 3, "header_bytes": 13}),
        (OldLog(3).data[:13] + b"\x4a" + OldLog(3).data[14:-1], CorruptBinlog, {"event": "START_V3(1)"}),
        (described({}, server=b"5.1.5-a_drop5p20"), Unsupported, {"server": "5.1.5-a_drop5p20"}),
        (described({}, header=13), Unsupported, {"header_bytes": 13}),
        (described({2: 7}), Unsupported, {"type": 2, "fixed_bytes": 7}),
        (described({19: 5}), Unsupported, {"type": 19, "fixed_bytes": 5}),
    ],
)
def test_log_of_an_unknown_format_is_refused(
    tmp_path: Path, start: bytes, error: type[ConnectorError], fields: dict[str, object]
) -> None:
    with pytest.raises(error) as refused:
        read(start, tmp_path)
    assert fields.items() <= refused.value.where.items()


def test_unsupported_old_event_is_refused_by_name(tmp_path: Path) -> None:
    log = OldLog()
    log.event(20, bytes(40))
    with pytest.raises(Unsupported) as raised:
        read(log.data, tmp_path)
    assert raised.value.where["event"] == "PRE_GA_WRITE_ROWS(20)"


def appended(data: bytes, kind: int, body: bytes, extra: bytes = b"") -> bytes:
    return data + event(len(data), kind, body, extra=extra)


def rows_of(table_ids: int, types: int = 27) -> bytes:
    """A transaction of one row with table ids of so many bytes, as 5.1 wrote it."""
    short = dict.fromkeys((19, 23, 24, 25), table_ids + 2)
    data = described(short, types=types, server=b"5.1.3-beta")
    number = struct.pack("<Q", 11)[:table_ids] + b"\1\0"
    data = appended(data, 2, struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0BEGIN")
    with_map = LogWriter(checksum=False)
    at = len(with_map.data)
    with_map.table_map([INT])
    data = appended(data, 19, number + with_map.data[at + 19 + 8 :])
    data = appended(data, 23, number + b"\x01\xff" + ONE)
    return appended(data, 16, bytes(8))


@pytest.mark.parametrize("table_ids", [4, 6])
def test_table_ids_of_four_bytes_are_read(tmp_path: Path, table_ids: int) -> None:
    assert row_changes(read(rows_of(table_ids), tmp_path), "t") == [("INSERT", None, [1])]


def test_longer_headers_and_fixed_parts_are_cut_to_the_known_fields(tmp_path: Path) -> None:
    data = described({2: 15, 5: 3}, header=27)
    extra = b"8 bytes "
    data = appended(data, 5, b"new" + INTVAR, extra)
    data = appended(data, 2, struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"??" + b"s\0INSERT INTO t VALUES (1)", extra)
    assert said(read(data, tmp_path)) == [("INSERT INTO t VALUES (1)", "41")]


def test_rotate_has_no_longer_header(tmp_path: Path) -> None:
    data = described({}, header=27)
    data = appended(data, 4, struct.pack("<Q", 4) + b"mysql-bin.000002")
    last = read(data, tmp_path)[-1]
    assert isinstance(last, PositionAdvance)
    assert (last.end.file, last.end.offset) == ("mysql-bin.000002", 4)


def test_query_without_status_variables_is_read(tmp_path: Path) -> None:
    data = described({2: 11})
    data = appended(data, 2, struct.pack("<IIBH", 7, 0, 1, 0) + b"s\0INSERT INTO t VALUES (1)")
    assert said(read(data, tmp_path)) == [("INSERT INTO t VALUES (1)", None)]
    broken = appended(described({2: 11}), 2, bytes(10))
    with pytest.raises(CorruptBinlog) as raised:
        read(broken, tmp_path)
    assert (raised.value.where["pos"], raised.value.where["event"]) == (107, "QUERY(2)")


def test_the_checksum_may_change_within_a_file(tmp_path: Path) -> None:
    log = LogWriter(checksum=False)
    for checksum in (True, False, True):
        log.query(b"DROP TABLE t")
        body = struct.pack("<H50sIB", 4, b"8.4.0", 0, 19) + bytes(POST_HEADERS) + bytes([checksum])
        log.checksum = checksum
        log.event(15, body if checksum else body + bytes(4))
    log.query(b"DROP TABLE t")
    assert len(said(read(log.data, tmp_path))) == 4
    with pytest.raises(CorruptBinlog) as wrong:
        read(log.data[:-1] + b"?", tmp_path)
    assert "checksum" in wrong.value.where


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def relay_event(kind: int, body: bytes, *, flags: int = 0, log_pos: int = 0) -> bytes:
    return sealed(struct.pack("<IBIIIH", 1_700_000_000, kind, 1, 19 + len(body) + 4, log_pos, flags) + body)


def test_relay_log_has_the_sources_positions(tmp_path: Path) -> None:
    """Its own format, word of the source's file and place, the source's format, then the source's events."""
    source = LogWriter()
    format_end = len(source.data)
    source.query(b"DROP TABLE a")
    first = source.data[format_end:]
    between = len(source.data)
    left_out = len(source.data) + 1000  # what the replica itself had written does not come
    body = struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0DROP TABLE b"
    second = relay_event(2, body, log_pos=left_out + 19 + len(body) + 4)
    own = bytearray(source.data[4:format_end])
    own[17] |= 0x40
    relay = b"\xfebin" + sealed(bytes(own[:-4]))
    relay += relay_event(35, bytes(8), flags=0x40, log_pos=0)
    relay += relay_event(4, struct.pack("<Q", 4) + b"binlog.000007", flags=0x20)
    relay += source.data[4:format_end] + first + second
    relay += relay_event(4, struct.pack("<Q", 4) + b"relay.000003", flags=0x40)

    found = [item for item in read(relay, tmp_path, "relay.000002") if isinstance(item, TransactionBatch)]

    assert said(list(found)) == [("DROP TABLE a", None), ("DROP TABLE b", None)]
    assert [item.ending and (item.ending.end.file, item.ending.end.offset) for item in found] == [
        ("binlog.000007", between),
        ("binlog.000007", left_out + 19 + len(body) + 4),
    ]
    assert [item.begin and item.begin.start.offset for item in found] == [format_end, left_out]


def test_relay_log_without_its_sources_name_has_its_own_positions(tmp_path: Path) -> None:
    source = LogWriter()
    format_end = len(source.data)
    source.query(b"DROP TABLE a")
    own = bytearray(source.data[4:format_end])
    own[17] |= 0x40
    relay = b"\xfebin" + sealed(bytes(own[:-4])) + relay_event(35, bytes(8), flags=0x40)
    begins = len(relay)
    relay += source.data[format_end:]
    (piece,) = [item for item in read(relay, tmp_path, "relay.000002") if isinstance(item, TransactionBatch)]
    assert piece.begin is not None
    assert (piece.begin.start.file, piece.begin.start.offset) == ("relay.000002", begins)


def test_source_format_in_a_relay_log_without_its_sources_name_counts_for_positions() -> None:
    """mysqlbinlog says `# at 596` and `# at 879` behind the two transactions."""
    reading = LogReading(KEEPING, 1 << 20, io.BytesIO())
    found = list(read_log(LogFile.at(RELAY), reading))
    ends = [item.ending.end for item in found if isinstance(item, TransactionBatch) and item.ending]
    assert [(end.file, end.offset) for end in ends] == [("relay.000005", 596), ("relay.000005", 879)]


def relay_of_4_0() -> bytes:
    """A replica's log of version 3: its own start with server id 2, then what its source sent."""
    log = OldLog(3)
    log.data = log.data.replace(struct.pack("<IBI", TIME, 1, 1), struct.pack("<IBI", TIME, 1, 2))
    named = struct.pack("<IBIIIH", 0, 4, 1, 19 + 8 + 13, 0, 0) + struct.pack("<Q", 4) + b"source.000003"
    log.data += named
    log.event(1, struct.pack("<H50sI", 3, b"4.0.30-log", 0), place=4)
    log.query(b"CREATE TABLE t (a INT)", place=79)
    log.query(b"BEGIN", place=5000)
    log.query(b"DELETE FROM t", place=4)  # as the transaction's cache counts
    log.query(b"COMMIT", place=5100)
    log.data += struct.pack("<IBIIIH", TIME, 4, 2, 19 + 8 + 12, 900, 0) + struct.pack("<Q", 4) + b"relay.000003"
    return log.data


def test_relay_log_of_version_3_has_the_sources_positions(tmp_path: Path) -> None:
    """The source's ROTATE there has no flag but the time 0; positions are where an event begins."""
    found = [item for item in read(relay_of_4_0(), tmp_path, "relay.000002") if isinstance(item, TransactionBatch)]
    assert said(list(found)) == [("CREATE TABLE t (a INT)", None), ("DELETE FROM t", None)]
    sizes = [19 + 11 + 2 + len(sql) for sql in (b"CREATE TABLE t (a INT)", b"BEGIN", b"DELETE FROM t", b"COMMIT")]
    places = [(piece.begin and piece.begin.start, piece.ending and piece.ending.end) for piece in found]
    assert [(str(start), str(end)) for start, end in places] == [
        ("source.000003:79", f"source.000003:{79 + sizes[0]}"),
        ("source.000003:5000", f"source.000003:{5000 + sum(sizes[1:])}"),
    ]


COLUMNS = " IGNORE 2 LINES (`a`, `b``c`)"
NEW_CLAUSES = (
    " FIELDS TERMINATED BY '||' ENCLOSED BY '\"' ESCAPED BY '\\\\' LINES STARTING BY '>' TERMINATED BY '\\n'" + COLUMNS
)


def test_load_data_of_4_0_has_its_file_and_statement(tmp_path: Path) -> None:
    """CREATE_FILE, APPEND_BLOCK and EXEC_LOAD, between them another file, which DELETE_FILE drops."""
    log = OldLog()
    log.event(8, load_body(8, block=b"1|2\n"))
    log.event(8, load_body(8, block=b"gone", file_id=4))
    log.event(9, struct.pack("<I", 3) + b"3|4\n")
    log.event(11, struct.pack("<I", 4))
    log.query(b"BEGIN")
    executed = log.event(10, struct.pack("<I", 3))
    log.query(b"COMMIT")
    (piece,) = read(log.data, tmp_path)
    assert isinstance(piece, TransactionBatch)
    block, load = piece.changes
    assert isinstance(block, Statement)
    assert isinstance(load, Statement)
    assert base64.b64decode(block.options["load_data_block"]) == b"1|2\n3|4\n"
    sql, options = load.sql, load.options
    assert sql == "LOAD DATA INFILE '/data/x\\'y.txt' REPLACE INTO TABLE `t`" + NEW_CLAUSES
    assert (load.schema, options["load_data_file"], options["load_data_duplicates"]) == ("s", "3", "replace")
    start, end = int(options["load_data_from"]), int(options["load_data_to"])
    assert sql[:start] + sql[end:] == "LOAD DATA TABLE `t`" + NEW_CLAUSES
    again = OldLog()
    again.event(10, struct.pack("<I", 3))
    with pytest.raises(CorruptBinlog) as raised:
        read(again.data, tmp_path)
    assert raised.value.where["event"] == "EXEC_LOAD(10)"
    assert executed < len(log.data)


@pytest.mark.parametrize(
    ("version", "code", "expected"),
    [
        (
            1,
            6,
            " FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '\\\\' LINES STARTING BY '' "
            "TERMINATED BY '\\n'" + COLUMNS,
        ),
        (3, 12, NEW_CLAUSES.replace(" ENCLOSED", " OPTIONALLY ENCLOSED")),
    ],
    ids=["LOAD", "NEW_LOAD"],
)
def test_load_data_without_its_file_is_a_statement_that_says_so(
    tmp_path: Path, version: int, code: int, expected: str
) -> None:
    log = OldLog(version)
    at = log.event(code, load_body(code, flags=0x0A))
    (piece,) = read(log.data, tmp_path)
    assert isinstance(piece, TransactionBatch)
    assert piece.begin is not None
    assert (piece.begin.start.offset, piece.begin.thread_id) == (at, 7)
    (load,) = piece.changes
    assert isinstance(load, Statement)
    assert load.sql == "LOAD DATA INFILE '/data/x\\'y.txt' IGNORE INTO TABLE `t`" + expected
    assert load.options["load_data_not_logged"] == "1"


QUERY_5_0 = struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0"


def relay_of_5_0(*, named: bool, last: int) -> bytes:
    """A replica's log as 5.0 writes it: nothing but the server id 2 marks what is its own."""
    data = described({}, server=b"5.0.22-log").replace(
        struct.pack("<IBI", TIME, 15, 1), struct.pack("<IBI", TIME, 15, 2)
    )
    if named:
        data += event(0, 4, struct.pack("<Q", 98) + b"source.000003", flags=0x20, log_pos=0)
    else:
        data += event(0, 15, described({}, server=b"5.0.22-log")[4 + 19 :], flags=0x20, log_pos=0)
    for place, word in ((98, b"BEGIN"), (98 + 39, b"DELETE FROM t"), (98 + 39 + 47, b"COMMIT")):
        data += event(place, 2, QUERY_5_0 + word)
    return data + event(len(data), last, struct.pack("<Q", 4) + b"relay.000003" if last == 4 else b"", server_id=2)


@pytest.mark.parametrize("last", [3, 4], ids=["STOP", "ROTATE"])
@pytest.mark.parametrize("named", [True, False])
def test_relay_log_of_5_0_ends_with_its_own_event(tmp_path: Path, named: bool, last: int) -> None:
    data = relay_of_5_0(named=named, last=last)
    found = read(data, tmp_path, "relay.000002")
    assert said(found) == [("DELETE FROM t", None)]
    (piece,) = [item for item in found if isinstance(item, TransactionBatch)]
    assert piece.begin is not None
    assert piece.ending is not None
    own = len(data) - (19 + (20 if last == 4 else 0))
    end = ("source.000003", 98 + 39 + 47 + 40) if named else ("relay.000002", own)
    assert (piece.ending.end.file, piece.ending.end.offset) == end


@pytest.mark.parametrize("relay", [False, True])
def test_positions_in_the_transaction_cache_before_5_0_34_are_converted_to_file_positions(
    tmp_path: Path, relay: bool
) -> None:
    """Behind BEGIN they count from 0; COMMIT stands in the file."""
    data = described({}, server=b"5.0.22-log")
    start = len(data)
    if relay:
        data += event(0, 4, struct.pack("<Q", start) + b"source.000003", flags=0x20, log_pos=0)
    begun = data + event(start, 2, QUERY_5_0 + b"BEGIN")
    cached = event(0, 5, INTVAR)
    cached += event(len(cached), 2, QUERY_5_0 + b"INSERT INTO t VALUES (NULL)")
    end = start + 39 + len(cached)
    found = read(begun + cached + event(end, 16, bytes(8)), tmp_path, "log.000001")
    assert said(found) == [("INSERT INTO t VALUES (NULL)", "41")]
    (piece,) = [item for item in found if isinstance(item, TransactionBatch)]
    assert piece.ending is not None
    assert piece.ending.end.offset == end + 27
    if not relay:
        with pytest.raises(CorruptBinlog) as jump:
            read(begun + event(1, 5, INTVAR), tmp_path, "log.000001")
        assert "ends" in jump.value.where


def bare_rows(server: bytes, *flags: int) -> bytes:
    """A TABLE_MAP, and for each of the flags an event with one row: no BEGIN, no COMMIT."""
    log = LogWriter(checksum=False, server=server)
    with_map = len(log.data)
    log.table_map([INT])
    data = described({}, server=server)
    data = appended(data, 19, log.data[with_map + 19 :])
    for flag in flags:
        data = appended(data, 23, struct.pack("<Q", 11)[:6] + bytes([flag, 0]) + b"\x01\xff" + ONE)
    return data


def test_rows_of_5_1_without_a_transaction_end_with_their_statement(tmp_path: Path) -> None:
    data = bare_rows(b"5.1.23-rc-log", 0, 1)
    begins, ends = len(described({})), len(data)
    data = appended(data, 2, QUERY_5_0 + b"DROP TABLE t")
    found = [item for item in read(data, tmp_path) if isinstance(item, TransactionBatch)]
    assert row_changes(found[:1], "t") == [("INSERT", None, [1]), ("INSERT", None, [1])]
    assert found[0].begin is not None
    assert found[0].ending is not None
    assert (found[0].begin.start.offset, found[0].ending.end.offset) == (begins, ends)
    assert said(found) == [("DROP TABLE t", None)]


def test_rows_without_a_transaction_are_damage_where_no_server_writes_them(tmp_path: Path) -> None:
    with pytest.raises(CorruptBinlog) as raised:
        read(bare_rows(b"5.5.8-log", 1), tmp_path)
    assert raised.value.where == {"file": "log.001", "pos": 107, "event": "TABLE_MAP(19)"}
    with pytest.raises(CorruptBinlog) as raised:
        read(bare_rows(b"5.1.23-rc-log", 0), tmp_path)
    assert raised.value.where == {"file": "log.001", "pos": 186}  # at the file's end


def test_relay_log_events_in_a_servers_own_log_are_a_jump(tmp_path: Path) -> None:
    source = LogWriter()
    source.data += relay_event(2, struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0DROP TABLE b", log_pos=9999)
    with pytest.raises(CorruptBinlog) as jump:
        read(source.data, tmp_path)
    assert "ends" in jump.value.where
