"""Statements in the log: their session values, the files that they load, and whether they are kept."""

from __future__ import annotations

import base64
import math
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from connector.config.filters import Filters, TableRule
from connector.config.source import Source
from connector.errors import ConnectorError, CorruptBinlog, Unsupported
from connector.log.ids import Kind, Outcome
from connector.log.transaction.batch import PositionAdvance, Rows, Statement, TransactionBatch
from connector.mysql.binlog.events.load_data import BLOCK
from connector.mysql.binlog.events.statement_values import statement_values
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import ALL, changes, row_changes, whole_file
from tests.support.binlog_writer import ColumnDef, LogWriter, image

KEEPING = Filter(Filters(), keeps_statements=True)
INT = ColumnDef(3, unsigned=False)
ONE = image([struct.pack("<i", 1)])


def read(
    log: LogWriter, folder: Path, filters: Filter = KEEPING, batch_bytes: int = 1 << 20
) -> list[TransactionBatch | PositionAdvance]:
    path = folder / "log.000001"
    path.write_bytes(log.data)
    return whole_file(path, filters=filters, batch_bytes=batch_bytes)


def insert_id(log: LogWriter, number: int) -> None:
    log.event(5, struct.pack("<BQ", 2, number))


def variable(kind: int, value: bytes, *, collation: int = 255, flags: bytes = b"\0", name: bytes = b"v") -> bytes:
    head = struct.pack("<I", len(name)) + name + b"\0" + struct.pack("<BII", kind, collation, len(value))
    return head + value + flags


def executes(file_id: int, sql: bytes, *, start: int, end: int, duplicates: int = 0) -> bytes:
    return struct.pack("<IIBHHIIIB", 7, 0, 1, 0, 0, file_id, start, end, duplicates) + b"s\0" + sql


def said(found: list[TransactionBatch | PositionAdvance]) -> list[str]:
    return [change.sql if isinstance(change, Statement) else "rows" for change in changes(found)]


@pytest.mark.parametrize(
    ("code", "body", "options"),
    [
        (5, struct.pack("<BQ", 1, 7), {"last_insert_id": "7"}),
        (5, struct.pack("<BQ", 2, 2**64 - 1), {"insert_id": "18446744073709551615"}),
        (13, struct.pack("<QQ", 5, 2**40), {"rand_seed1": "5", "rand_seed2": "1099511627776"}),
        (14, b"\x01\0\0\0v\x01", {"@v": "NULL"}),
        (14, variable(0, "é".encode()), {"@v": "_utf8mb4 0xc3a9 COLLATE utf8mb4_0900_ai_ci"}),
        (14, variable(0, b"\xe9", collation=8), {"@v": "_latin1 0xe9 COLLATE latin1_swedish_ci"}),
        (14, variable(0, b""), {"@v": "_utf8mb4 '' COLLATE utf8mb4_0900_ai_ci"}),
        (14, variable(0, b"\0\xff", collation=63), {"@v": "_binary 0x00ff"}),
        (14, variable(1, struct.pack("<d", 1.5)), {"@v": "1.5e0"}),
        (14, variable(1, struct.pack("<d", -1e300)), {"@v": "-1e+300"}),
        (14, variable(2, struct.pack("<q", -5)), {"@v": "-5"}),
        (14, variable(2, struct.pack("<Q", 2**63), flags=b"\1"), {"@v": "CAST(9223372036854775808 AS UNSIGNED)"}),
        (14, variable(2, struct.pack("<q", 5), flags=b""), {"@v": "5"}),  # before 5.5.25
        (14, variable(4, bytes.fromhex("04028c32")), {"@v": "12.50"}),
        (14, variable(4, bytes.fromhex("040273cd")), {"@v": "-12.50"}),
        (14, variable(4, bytes.fromhex("010087")), {"@v": "7."}),
        (14, variable(4, bytes.fromhex("1d14 80000000 00000001 0df28e80 00")), {"@v": "0.00000000123400000000"}),
        (14, variable(2, bytes(8), name="a`é, =".encode()), {"@a`é, =": "0"}),
    ],
)
def test_values_for_a_statement_are_decoded(code: int, body: bytes, options: dict[str, str]) -> None:
    assert statement_values(code, body) == options


@pytest.mark.parametrize(
    ("code", "body", "error", "fields"),
    [
        (5, struct.pack("<BQ", 3, 7), CorruptBinlog, {"meaning": 3}),
        (5, struct.pack("<BQ", 1, 7) + b"x", CorruptBinlog, {"bytes_left": 1}),
        (13, bytes(15), CorruptBinlog, {"needed": 8, "left": 7}),
        (14, variable(3, b""), Unsupported, {"type": 3}),
        (14, variable(0, b"x", collation=9999), Unsupported, {"collation": 9999}),
        (14, variable(1, bytes(9)), CorruptBinlog, {"type": 1, "bytes_left": 1}),
        (14, variable(1, struct.pack("<d", math.inf)), CorruptBinlog, {"value": math.inf}),
        (14, variable(4, b"\x00\x00"), CorruptBinlog, {"precision": 0, "scale": 0}),
        (14, variable(4, b"\x09\x00\xff\xff\xff\xff"), CorruptBinlog, {"group": "2147483647"}),
        (14, struct.pack("<I", 2**31) + b"v", CorruptBinlog, {"needed": 2**31, "left": 1}),
    ],
)
def test_impossible_value_for_a_statement_is_refused(
    code: int, body: bytes, error: type[ConnectorError], fields: dict[str, object]
) -> None:
    with pytest.raises(error) as refused:
        statement_values(code, body)
    assert refused.value.where == fields


@given(st.binary(max_size=60), st.sampled_from([5, 13, 14]))
def test_random_bytes_are_values_or_refused(body: bytes, code: int) -> None:
    try:
        assert all(isinstance(value, str) for value in statement_values(code, body).values())
    except ConnectorError as error:
        assert error.message


def test_statements_and_rows_of_a_transaction_stay_in_order(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    insert_id(log, 41)
    log.event(13, struct.pack("<QQ", 1, 2))
    log.event(14, variable(2, struct.pack("<q", 5)))
    log.query(b"INSERT INTO t VALUES (@v)", state=b"\x05\x03UTC")
    log.table_map([INT])
    log.rows(30, 1, ONE)
    log.query(b"CREATE TEMPORARY TABLE x (a INT)")
    log.query(b"SAVEPOINT `p`")
    log.query(b"UPDATE t SET a = 2")
    log.query(b"ROLLBACK TO `p`")
    log.query(b"ROLLBACK")
    (piece,) = read(log, tmp_path)

    assert isinstance(piece, TransactionBatch)
    assert said([piece]) == [
        "INSERT INTO t VALUES (@v)", "rows", "CREATE TEMPORARY TABLE x (a INT)", "SAVEPOINT `p`", "UPDATE t SET a = 2",
        "ROLLBACK TO `p`",
    ]  # fmt: skip
    first, update = piece.changes[0], piece.changes[4]
    assert isinstance(first, Statement)
    assert list(first.options)[-4:] == ["insert_id", "rand_seed1", "rand_seed2", "@v"]
    assert first.options["time_zone"] == "UTC"
    assert isinstance(update, Statement)
    assert "insert_id" not in update.options
    assert piece.begin is not None
    assert piece.begin.kind is Kind.TRANSACTION
    assert piece.ending is not None
    assert piece.ending.outcome is Outcome.ROLLBACK


@pytest.mark.parametrize(
    ("zone", "known", "named"), [("SYSTEM", "CET", "CET"), ("+01:00", "CET", None), ("SYSTEM", "", None)]
)
def test_change_in_the_system_time_zone_names_it(tmp_path: Path, zone: str, known: str, named: str | None) -> None:
    log = LogWriter()
    log.begin()
    log.query(b"INSERT INTO t VALUES (NOW())", state=b"\x05" + bytes([len(zone)]) + zone.encode())
    log.commit()
    found = read(log, tmp_path, Filter(Filters(), keeps_statements=True, system_time_zone=known))
    (change,) = changes(found)
    assert isinstance(change, Statement)
    assert change.options["time_zone"] == zone
    assert change.options.get("system_time_zone") == named


def test_change_of_a_mariadb_names_its_dialect(tmp_path: Path) -> None:
    log = LogWriter(server=b"10.11.5-MariaDB-log")
    log.query(b"INSERT INTO t VALUES (1)")
    (change,) = changes(read(log, tmp_path))
    assert isinstance(change, Statement)
    assert change.options["dialect"] == "mariadb"


@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES (1)", "ROLLBACK TO `s`", "CREATE TEMPORARY TABLE x (a INT)"])
def test_refused_statement_is_named_with_file_position_and_text(tmp_path: Path, sql: str) -> None:
    log = LogWriter()
    log.begin()
    log.table_map([INT])
    log.rows(30, 1, ONE)
    at = len(log.data)
    log.query(sql.encode())
    with pytest.raises(Unsupported) as caught:
        read(log, tmp_path, ALL)
    schemas = caught.value.where.pop("schemas", None)
    assert schemas == ("not in the log, so no filter can leave the change out" if sql.startswith("INSERT") else None)
    assert caught.value.where == {"file": "log.000001", "pos": at, "event": "QUERY(2)", "sql": sql}
    assert "source.statements=keep" in caught.value.hint
    assert "thl apply --skip-seqno" in caught.value.hint


def test_hint_for_a_refused_statement_names_what_the_configuration_accepts(tmp_path: Path) -> None:
    log = LogWriter()
    log.query(b"INSERT INTO shop.t VALUES (1)", state=b"\x0c\x02shop\0other\0")
    rule = TableRule.model_validate({"match": ["shop.t"], "actions": ["insert"]})
    with pytest.raises(Unsupported) as caught:
        read(log, tmp_path, Filter(Filters(tables=(rule,))))
    assert caught.value.where["schemas"] == "shop, other"
    assert "source.statements=keep" not in caught.value.hint
    assert "another `service`" in caught.value.hint
    with pytest.raises(ValidationError, match="statements=keep"):
        Source.model_validate({"server_id": 7, "filters": {"tables": [rule]}, "statements": "keep"})


def test_thread_id_is_kept_for_statements_about_temporary_tables(tmp_path: Path) -> None:
    log = LogWriter()
    head = struct.pack("<IIBHH", 77, 0, 1, 0, 0) + b"s\0"
    log.event(2, head + b"CREATE TEMPORARY TABLE x (a INT)", flags=0x4)
    log.event(2, head + b"CREATE DATABASE s", flags=0x8)
    first, second = (change.options for change in changes(read(log, tmp_path, ALL)) if isinstance(change, Statement))
    assert (first.get("pseudo_thread_id"), first.get("suppress_use")) == ("77", None)
    assert (second.get("pseudo_thread_id"), second.get("suppress_use")) == (None, "1")


def test_statement_outside_a_transaction_begins_with_its_values(tmp_path: Path) -> None:
    """As servers before 5.5 log changes to tables without transactions."""
    log = LogWriter()
    start = len(log.data)
    insert_id(log, 1)
    log.query(b"INSERT INTO t VALUES (NULL)")
    (piece,) = read(log, tmp_path)
    assert isinstance(piece, TransactionBatch)
    assert piece.begin is not None
    assert (piece.begin.kind, piece.begin.start.offset, piece.begin.thread_id) == (Kind.TRANSACTION, start, 7)
    assert piece.ending is not None
    assert piece.ending.end.offset == len(log.data)


def test_values_without_their_statement_are_corrupt(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    insert_id(log, 1)
    log.commit()
    with pytest.raises(CorruptBinlog) as raised:
        read(log, tmp_path)
    assert raised.value.where["event"] == "XID(16)"


def test_statement_on_uncaptured_schemas_is_left_out(tmp_path: Path) -> None:
    """Only what the source noted counts: the default schema does not tell what the text names."""
    touches = lambda *names: b"\x0c" + bytes([len(names)]) + b"".join(name + b"\0" for name in names)  # noqa: E731
    log = LogWriter()
    log.query(b"INSERT INTO other.t VALUES (1)", schema=b"shop", state=touches(b"other"))
    log.query(b"INSERT INTO shop.t VALUES (2)", schema=b"other", state=touches(b"shop"))
    log.query(b"INSERT INTO shop.t VALUES (3)", schema=b"other")
    found = read(log, tmp_path, Filter(Filters(do=("shop",)), keeps_statements=True))
    assert [sql[-2:-1] for sql in said(found)] == ["2", "3"]
    assert isinstance(found[0], PositionAdvance)


def test_many_statements_come_in_batches(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    for number in range(100):
        log.query(b"INSERT INTO t VALUES (%d)" % number)
    log.commit()
    found = read(log, tmp_path, batch_bytes=5000)
    assert 10 < len(found) < 30
    assert said(found) == [f"INSERT INTO t VALUES ({number})" for number in range(100)]


@pytest.mark.parametrize("inside", [True, False])
def test_the_file_of_load_data_comes_before_its_statement(tmp_path: Path, inside: bool) -> None:
    content = bytes(range(256)) * 1000
    sql = "/* ä */ LOAD DATA INFILE '/x' INTO TABLE `t` (a)".encode()
    log = LogWriter()
    if inside:
        log.begin()
    log.event(17, struct.pack("<I", 5) + content[:100_000])
    log.event(9, struct.pack("<I", 5) + content[100_000:])
    log.event(18, executes(5, sql, start=18, end=35, duplicates=2))
    if inside:
        log.commit()
    found = read(log, tmp_path, batch_bytes=100_000)

    *blocks, statement = [change for change in changes(found) if isinstance(change, Statement)]
    assert b"".join(base64.b64decode(block.options["load_data_block"]) for block in blocks) == content
    assert len(blocks) == -(-len(content) // BLOCK)
    assert {block.options["load_data_file"] for block in blocks} == {"5"}
    options = statement.options
    named = statement.sql[int(options["load_data_from"]) : int(options["load_data_to"])]
    assert named == " INFILE '/x' INTO"
    assert (options["load_data_file"], options["load_data_duplicates"]) == ("5", "replace")
    assert len(found) > 2
    assert isinstance(found[-1], TransactionBatch)
    assert found[-1].ending is not None
    with pytest.raises(Unsupported) as caught:
        read(log, tmp_path, ALL)
    assert caught.value.where["sql"] == sql.decode()


def test_load_data_files_of_several_sessions_may_interleave(tmp_path: Path) -> None:
    """As servers before 5.1 log them."""
    sql = b"LOAD DATA INFILE '/x' INTO TABLE t"
    log = LogWriter()
    log.event(17, struct.pack("<I", 1) + b"one ")
    log.event(17, struct.pack("<I", 2) + b"two")
    log.event(17, struct.pack("<I", 3) + b"not used")
    log.event(9, struct.pack("<I", 1) + b"and one")
    log.event(11, struct.pack("<I", 3))
    for number in (2, 1):
        log.begin()
        log.event(18, executes(number, sql, start=9, end=26))
        log.commit()
    found = read(log, tmp_path)
    blocks = [
        base64.b64decode(change.options["load_data_block"])
        for change in changes(found)
        if isinstance(change, Statement) and "load_data_block" in change.options
    ]
    assert blocks == [b"two", b"one and one"]


@pytest.mark.parametrize(
    ("events", "error", "where"),
    [
        ([(9, struct.pack("<I", 1))], CorruptBinlog, (127, "APPEND_BLOCK(9)", 1)),
        ([(18, executes(1, b"LOAD", start=0, end=1))], CorruptBinlog, (127, "EXECUTE_LOAD_QUERY(18)", 1)),
        (
            [(17, struct.pack("<I", 1)), (18, executes(1, b"LOAD", start=1, end=9))],
            CorruptBinlog,
            (154, "EXECUTE_LOAD_QUERY(18)", None),
        ),
        (
            [(17, struct.pack("<I", 1)), (18, executes(1, b"LOAD", start=0, end=1, duplicates=9))],
            Unsupported,
            (154, "EXECUTE_LOAD_QUERY(18)", None),
        ),
        (
            [(17, struct.pack("<I", number)) for number in range(300)],
            CorruptBinlog,
            (7039, "BEGIN_LOAD_QUERY(17)", None),  # the 257th file
        ),
    ],
)
def test_load_data_file_that_does_not_fit_its_statement_is_refused(
    tmp_path: Path, events: list[tuple[int, bytes]], error: type[ConnectorError], where: tuple[int, str, int | None]
) -> None:
    log = LogWriter()
    for kind, body in events:
        log.event(kind, body)
    with pytest.raises(error) as raised:
        read(log, tmp_path)
    found = raised.value.where
    assert (found["pos"], found["event"], found.get("file_id")) == where


def test_a_savepoint_among_rows_is_kept_only_where_statements_are(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    log.query(b"SAVEPOINT `a`")
    log.table_map([INT])
    log.rows(30, 1, ONE)
    log.commit()
    assert said(read(log, tmp_path)) == ["SAVEPOINT `a`", "rows"]
    found = read(log, tmp_path, ALL)
    assert [type(change) for change in changes(found)] == [Rows]
    assert row_changes(found, "t") == [("INSERT", None, [1])]
