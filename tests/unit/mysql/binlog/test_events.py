"""Every event is decoded, skipped because nothing of it is captured, or refused with its name and position."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path

import pytest
import zstandard
from prometheus_client import REGISTRY

from connector.config.filters import Filters
from connector.errors import ConnectorError, CorruptBinlog, Unsupported
from connector.log.gtid.mysql import GtidSet
from connector.log.ids import Kind, Outcome
from connector.log.transaction.batch import PositionAdvance, Rows, Statement, TransactionBatch
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.events.format_description import format_description
from connector.mysql.binlog.events.gtid_tagged import COMMITTED
from connector.mysql.binlog.events.query import query
from connector.mysql.binlog.events.stream_messages import dump_heartbeat
from connector.mysql.server.gtid_set import decode_gtid_set, encode_gtid_set
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import changes, row_changes, whole_file
from tests.support.binlog_writer import ColumnDef, LogWriter, image, packed, read_back

INT = ColumnDef(3, unsigned=False)
ONE = image([struct.pack("<i", 1)])
TWO = image([struct.pack("<i", 2)])


def log_with(kind: int, body: bytes = b"", *, flags: int = 0) -> LogWriter:
    log = LogWriter()
    log.event(kind, body, flags=flags)
    return log


def transaction(log: LogWriter, column: ColumnDef = INT, images: bytes = ONE) -> LogWriter:
    log.begin()
    log.table_map([column])
    log.rows(30, 1, images)
    log.commit()
    return log


@pytest.mark.parametrize("kind", [3, 28, 29, 35, 36, 37])
def test_events_without_changes_are_left_out_and_counted(tmp_path: Path, kind: int) -> None:
    def counted() -> float:
        return sum(
            sample.value
            for metric in REGISTRY.collect()
            if metric.name == "thl_ignored_binlog_events"
            for sample in metric.samples
            if sample.name.endswith("_total")
        )

    before = counted()
    assert read_back(transaction(log_with(kind, b"xyz")), tmp_path)
    assert counted() == before + 1


def test_unknown_event_is_refused_unless_marked_ignorable(tmp_path: Path) -> None:
    assert len(read_back(transaction(log_with(99, flags=0x80)), tmp_path)) == 1

    log = log_with(99)
    with pytest.raises(Unsupported) as caught:
        read_back(log, tmp_path)

    assert caught.value.where["file"] == "log.000001"
    assert caught.value.where["pos"] == len(log.data) - 23


@pytest.mark.parametrize(
    ("kind", "body", "error", "hint"),
    [
        (14, b"", CorruptBinlog, ""),
        (18, b"", CorruptBinlog, ""),
        (6, b"", CorruptBinlog, ""),
        (10, bytes(4), CorruptBinlog, ""),
        (26, b"\x01\x00\x05disk!", CorruptBinlog, "another `service`"),
        (38, b"", CorruptBinlog, ""),
        (20, b"", Unsupported, ""),
        (162, b"", CorruptBinlog, ""),
        (164, bytes(17), Unsupported, "--read-from-remote-server"),
        (16, bytes(8), CorruptBinlog, ""),
        (19, bytes(8), CorruptBinlog, ""),
        (30, bytes(8) + b"\x02\x00", CorruptBinlog, ""),
        (40, b"\x00", CorruptBinlog, ""),
        (33, bytes(3), CorruptBinlog, ""),
    ],
)
def test_unreadable_event_stops_with_its_type_position_and_hint(
    tmp_path: Path, kind: int, body: bytes, error: type[ConnectorError], hint: str
) -> None:
    log = log_with(kind, body)
    start = len(LogWriter().data)
    with pytest.raises(error) as raised:
        read_back(log, tmp_path)
    assert raised.value.where["pos"] == start
    assert str(raised.value.where["event"]).endswith(f"({kind})")
    assert hint in raised.value.hint


def test_file_that_ends_inside_a_transaction_is_corrupt_at_its_end(tmp_path: Path) -> None:
    log = log_with(5, b"\x01" + bytes(8))
    with pytest.raises(CorruptBinlog) as raised:
        read_back(log, tmp_path)
    assert raised.value.where == {"file": "log.000001", "pos": len(log.data)}


def test_rows_events_of_version_1_are_decoded_alike(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    log.table_map([INT])
    log.event(23, bytes([11, 0, 0, 0, 0, 0, 1, 0, 1, 0xFF]) + ONE)
    log.event(24, bytes([11, 0, 0, 0, 0, 0, 1, 0, 1, 0xFF, 0xFF]) + ONE + TWO)
    log.event(25, bytes([11, 0, 0, 0, 0, 0, 1, 0, 1, 0xFF]) + TWO)
    log.commit()

    assert row_changes(read_back(log, tmp_path), "t") == [
        ("INSERT", None, [1]),
        ("UPDATE", [1], [2]),
        ("DELETE", [2], None),
    ]


def test_rows_of_one_table_and_action_are_one_change(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    for _ in range(3):
        log.table_map([INT])
        log.rows(30, 1, ONE)
    log.rows(32, 1, ONE + TWO)
    log.commit()

    runs = [
        (change.action.name, change.count) for change in changes(read_back(log, tmp_path)) if isinstance(change, Rows)
    ]

    assert runs == [("INSERT", 3), ("DELETE", 2)]


def test_rows_that_do_not_fit_their_table_are_corrupt(tmp_path: Path) -> None:
    for body in (bytes(10), bytes([12, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0xFF])):
        log = LogWriter()
        log.begin()
        log.table_map([INT])
        log.event(30, body)
        with pytest.raises(CorruptBinlog) as raised:
            read_back(log, tmp_path)
        assert raised.value.where["event"] == "WRITE_ROWS(30)"
    log = LogWriter()
    log.begin()
    log.table_map([INT])
    log.rows(30, 2, ONE)
    with pytest.raises(CorruptBinlog) as raised:
        read_back(log, tmp_path)
    assert raised.value.where["event"] == "WRITE_ROWS(30)"


def test_uncaptured_table_may_have_unknown_types(tmp_path: Path) -> None:
    unknown = ColumnDef(252, b"\x01", collation=9999)
    log = transaction(LogWriter(), unknown, image([b"\x02\xa4\xa4"]))
    with pytest.raises(Unsupported) as caught:
        read_back(log, tmp_path)
    assert caught.value.where["collation"] == 9999
    assert caught.value.where["column"] == "c0"

    found = whole_file(tmp_path / "log.000001", filters=Filter(Filters(ignore=("s.t",))))

    assert [type(item) for item in found] == [PositionAdvance]


def test_names_missing_from_the_metadata_are_refused(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    log.table_map([INT], metadata="MINIMAL")
    with pytest.raises(Unsupported) as caught:
        read_back(log, tmp_path)
    assert "binlog_row_metadata = FULL" in caught.value.hint


def test_table_ids_are_forgotten_at_a_server_restart(tmp_path: Path) -> None:
    log = transaction(LogWriter())
    again = LogWriter().data[4:]
    end = len(log.data) + len(again)
    log.data += again[:13] + struct.pack("<I", end) + again[17:]
    log.data = log.data[:-4]
    import zlib

    log.data += struct.pack("<I", zlib.crc32(log.data[-len(again) + 4 :]))
    log.begin()
    log.rows(30, 1, ONE)
    with pytest.raises(CorruptBinlog) as raised:
        read_back(log, tmp_path)
    assert raised.value.where["event"] == "WRITE_ROWS(30)"


def test_a_transaction_inside_another_is_corrupt(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    second = len(log.data)
    log.begin()
    with pytest.raises(CorruptBinlog) as raised:
        read_back(log, tmp_path)
    assert (raised.value.where["event"], raised.value.where["pos"]) == ("QUERY(2)", second)


@pytest.mark.parametrize("end", [b"COMMIT", b"ROLLBACK"])
def test_transaction_ended_by_a_statement_has_its_outcome(tmp_path: Path, end: bytes) -> None:
    log = LogWriter()
    log.begin()
    log.table_map([INT])
    log.rows(30, 1, ONE)
    log.query(end)
    (piece,) = read_back(log, tmp_path)
    assert isinstance(piece, TransactionBatch)
    assert piece.ending is not None
    assert piece.ending.outcome is (Outcome.COMMIT if end == b"COMMIT" else Outcome.ROLLBACK)
    assert piece.ending.commit_time == 1_700_000_000_000_000


@pytest.mark.parametrize(
    "sql",
    [
        "insert into t values (1)",
        "/* a */ -- b\n # c\n UPDATE t SET a = 1",
        "/*!50000 DELETE FROM t */",
        "(SELECT 1)",
        "with x as (select 1) delete from t",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "replace t select 1",
        "CALL p()",
        "ROLLBACK TO `s`",
        "XA START 'x'",
        "XA COMMIT 'x'",
    ],
)
def test_changes_logged_as_statements_are_refused(tmp_path: Path, sql: str) -> None:
    log = LogWriter()
    log.query(sql.encode())
    with pytest.raises(Unsupported):
        read_back(log, tmp_path)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE x (a int)",
        "/* insert */ create table `update` select 1",
        "\n\tDROP TABLE `x` /* generated by server */",
        "/*!50003 CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW SET @a = 1 */",
        "TRUNCATE t",
        "rename table a to b",
        "GRANT INSERT ON s.t TO u",
        "analyze table t",
        "/*M! SAVEPOINT */ TRUNCATE TABLE t",  # a comment to a MySQL
        "/*M!100100 COMMIT */ DROP TABLE t",
        "--\x7fCOMMIT\n TRUNCATE t",
    ],
)
def test_every_other_statement_is_a_definition(tmp_path: Path, sql: str) -> None:
    log = LogWriter()
    log.query(sql.encode())
    (piece,) = read_back(log, tmp_path)
    assert [change.sql for change in changes([piece]) if isinstance(change, Statement)] == [sql]


def test_transaction_control_is_recognised_as_the_server_does() -> None:
    def control(sql: str, *, mariadb: bool = False) -> str:
        text = sql.encode()
        return query(struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0" + text, 0, mariadb=mariadb).control

    assert control("/*M! SAVEPOINT */ TRUNCATE TABLE t") == ""
    assert control("/*M!100100 SAVEPOINT a */", mariadb=True) == "savepoint"
    assert control("/*!50100 SAVEPOINT a */") == control("/* x */ SAVEPOINT a") == "savepoint"


def test_definition_is_captured_by_the_tables_in_its_text(tmp_path: Path) -> None:
    log = LogWriter()
    touches = lambda *names: b"\x0c" + bytes([len(names)]) + b"".join(name + b"\0" for name in names)  # noqa: E731
    log.query(b"CREATE TABLE other.a (a int)", schema=b"shop", state=touches(b"other"))
    log.query(b"TRUNCATE TABLE shop.t", schema=b"other")
    log.query(b"CREATE TABLE other.b LIKE shop.t", schema=b"shop")
    log.query(b"DROP TABLE a, shop.t, `shop`.`u` /* generated by server */", schema=b"other", state=touches(b"other"))
    log.query(b"ALTER TABLE shop.t ADD a INT", schema=b"other", state=b"\x0c\xfe")  # more than 16
    log.query(b"CREATE USER x", schema=b"", state=touches(b"mysql"))
    log.query(b"CREATE VIEW other.v AS SELECT 1", schema=b"shop", state=touches(b"other"))
    read_back(log, tmp_path)

    found = whole_file(tmp_path / "log.000001", filters=Filter(Filters(do=("shop",))))

    assert [getattr(change, "sql", "") for change in changes(found)] == [
        "TRUNCATE TABLE shop.t",
        "DROP TABLE shop.t, `shop`.`u` /* generated by server */",
        "ALTER TABLE shop.t ADD a INT",
        "CREATE USER x",
    ]
    assert [type(item) for item in found] == [
        PositionAdvance,
        TransactionBatch,
        PositionAdvance,
        TransactionBatch,
        TransactionBatch,
        TransactionBatch,
        PositionAdvance,
    ]


def test_definition_logged_as_two_statements_is_one_event(tmp_path: Path) -> None:
    log = LogWriter()
    log.query(b"RENAME TABLE log TO attic.log, log_new TO log", schema=b"shop")
    log.query(b"DROP TABLE x", schema=b"shop")
    read_back(log, tmp_path)

    one, two = whole_file(tmp_path / "log.000001", filters=Filter(Filters(do=("shop",))))

    assert isinstance(one, TransactionBatch)
    assert one.begin is not None
    assert one.begin.kind is Kind.DDL
    assert [getattr(change, "sql", "") for change in one.changes] == [
        "DROP TABLE IF EXISTS `shop`.`log`",
        "RENAME TABLE log_new TO log",
    ]
    assert isinstance(two, TransactionBatch)


def test_an_unknown_status_variable_is_refused(tmp_path: Path) -> None:
    log = LogWriter()
    log.query(b"DROP TABLE a", state=b"\x63\x00")
    with pytest.raises(Unsupported) as raised:
        read_back(log, tmp_path)
    assert raised.value.where["variable"] == 99


def test_a_statements_text_is_decoded_with_its_sessions_charset() -> None:
    state = b"\x04" + struct.pack("<HHH", 8, 8, 8)
    body = struct.pack("<IIBHH", 1, 0, 0, 0, len(state)) + state + b"\0CREATE TABLE `\x80`"
    assert query(body, 0).statement.sql == "CREATE TABLE `\u20ac`"


def payload_event(inner: bytes, *, said: int | None = None, compression: int = 0, level: int = 3) -> bytes:
    data = zstandard.ZstdCompressor(level=level).compress(inner)
    fields = [(2, compression), (3, len(inner) if said is None else said), (1, len(data))]
    head = b"".join(bytes([kind, len(packed(value))]) + packed(value) for kind, value in fields)
    return head + b"\0" + data


def inner_events(images: bytes = ONE) -> bytes:
    log = LogWriter(checksum=False)
    begin = len(log.data)
    transaction(log, images=images)
    return log.data[begin:]


def test_a_compressed_transaction_is_a_transaction(tmp_path: Path) -> None:
    log = log_with(40, payload_event(inner_events(ONE + TWO)))
    end = len(log.data)
    (piece,) = read_back(log, tmp_path)
    assert row_changes([piece], "t") == [("INSERT", None, [1]), ("INSERT", None, [2])]
    assert isinstance(piece, TransactionBatch)
    assert piece.ending is not None
    assert piece.ending.end == SourcePosition("log.000001", end)


@pytest.mark.parametrize(
    ("body", "error", "method"),
    [
        (payload_event(inner_events(), said=10), CorruptBinlog, None),
        (payload_event(inner_events(), said=10_000), CorruptBinlog, None),
        (payload_event(inner_events()[:-3]), CorruptBinlog, None),
        (payload_event(inner_events() + inner_events()[:30]), CorruptBinlog, None),
        (payload_event(inner_events(), compression=7), Unsupported, 7),
        (payload_event(inner_events())[:-9], CorruptBinlog, None),
        (b"\x02\x01\x00\x03\x01\x05\x01\x01\x04\x00abcd", CorruptBinlog, None),
    ],
)
def test_a_damaged_compressed_transaction_is_refused(
    tmp_path: Path, body: bytes, error: type[ConnectorError], method: int | None
) -> None:
    with pytest.raises(error) as raised:
        read_back(log_with(40, body), tmp_path)
    assert raised.value.where["pos"] == len(LogWriter().data)
    assert raised.value.where.get("method") == method


def test_offsets_beyond_4_gib_are_counted_on() -> None:
    """LOG_POS wraps; so do the heartbeats of old servers."""
    assert dump_heartbeat(b"f", False, 100, 99) == ("f", 100)
    assert dump_heartbeat(b"f", False, 100, (1 << 32) - 5) == ("f", (1 << 32) + 100)
    body = b"\x01\x01f" + b"\x02\x09\xfe" + struct.pack("<Q", 5 << 32) + b"\0"
    assert dump_heartbeat(body, True, 0, 4) == ("f", 5 << 32)
    with pytest.raises(CorruptBinlog):
        dump_heartbeat(b"\x01\x01f\0", True, 0, 4)


@pytest.mark.parametrize(
    ("at", "value", "error"),
    [
        (19, 3, Unsupported),  # version 3
        (19 + 2 + 50 + 4, 18, Unsupported),  # a shorter header
        (19 + 57 + 18, 5, Unsupported),  # TABLE_MAP of no server
        (-5, 9, Unsupported),  # an unknown checksum
        (30, 65, CorruptBinlog),  # the server's version: the checksum tells
    ],
)
def test_unknown_formats_are_refused(at: int, value: int, error: type[ConnectorError]) -> None:
    import zlib

    event = bytearray(LogWriter().data[4:])
    event[at] = value
    sealed = bytes(event) if error is CorruptBinlog else bytes(event[:-4]) + struct.pack("<I", zlib.crc32(event[:-4]))
    with pytest.raises(error):
        format_description(sealed)


def test_gtid_sets_are_encoded_with_and_without_tags() -> None:
    one = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    raw = bytes.fromhex(one.replace("-", ""))
    plain = encode_gtid_set(GtidSet.parse(f"{one}:1-3:7"))
    assert plain == struct.pack("<Q16sQQQQQ", 1, raw, 2, 1, 4, 7, 8)
    tagged = encode_gtid_set(GtidSet.parse(f"{one}:1-3:ab:5"))
    assert tagged == (
        b"\x01\x02\0\0\0\0\0\x01" + raw + b"\0" + struct.pack("<QQQ", 1, 1, 4)
        + raw + b"\x04ab" + struct.pack("<QQQ", 1, 5, 6)
    )  # fmt: skip
    assert encode_gtid_set(GtidSet.parse("")) == bytes(8)


@pytest.mark.parametrize(
    "text",
    ["", f"{uuid.UUID(int=1)}:1-3:7:9-10", f"{uuid.UUID(int=1)}:1-3:ab:5,{uuid.UUID(int=2)}:x_9:9223372036854775806"],
)
def test_gtid_sets_are_decoded_as_they_were_encoded(text: str) -> None:
    encoded = encode_gtid_set(GtidSet.parse(text))
    assert decode_gtid_set(encoded) == GtidSet.parse(text)
    for damaged in (*(encoded[:size] for size in range(len(encoded))), encoded + b"\0"):
        with pytest.raises(CorruptBinlog):
            decode_gtid_set(damaged)
    if text:
        with pytest.raises(CorruptBinlog) as raised:
            decode_gtid_set(encoded[:-8] + bytes(8))
        assert raised.value.where["after"] == 0


@pytest.mark.parametrize("number", [1, 9, 10, 99, 100, 10**18, 2**63 - 2])
def test_a_gtid_has_its_number_in_decimal(tmp_path: Path, number: int) -> None:
    log = LogWriter()
    log.gtid(uuid.UUID(int=7), number)
    (one,) = read_back(transaction(log), tmp_path)
    assert isinstance(one, TransactionBatch)
    assert one.begin is not None
    assert one.begin.gtid == f"{uuid.UUID(int=7)}:{number}"


@pytest.mark.parametrize("number", [0, 2**63, 2**64 - 1])
def test_a_gtid_with_an_impossible_number_is_damage(tmp_path: Path, number: int) -> None:
    log = LogWriter()
    log.gtid(uuid.UUID(int=7), number)
    with pytest.raises(CorruptBinlog):
        read_back(transaction(log), tmp_path)


def test_tagged_gtid_with_an_impossible_commit_time_is_damage(tmp_path: Path) -> None:
    """Of 64 bits, of which an untagged one has 55."""
    first = b"\2\2\0" + b"\2" + b"\2" * 16 + b"\4\4"  # version, size, needed; uuid; number 1
    for committed, error in ((b"\xff" + struct.pack("<Q", (1 << 64) - 1), CorruptBinlog), (b"\2", None)):
        log = LogWriter()
        log.event(42, first + bytes([COMMITTED << 1]) + committed)
        transaction(log)
        if error is None:
            assert len(read_back(log, tmp_path)) == 1
            continue
        with pytest.raises(error) as raised:
            read_back(log, tmp_path)
        assert raised.value.where["event"] == "GTID_TAGGED(42)"
