"""The JSON format of transactions."""

from __future__ import annotations

import base64
import json
import math
import struct
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.inspect.formats.json_rows import JsonRows
from connector.inspect.formats.json_transaction import JsonPrinter
from connector.inspect.formats.tungsten_rows import TungstenRows
from connector.log.ids import Action, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch
from tests.support.batches import BEGIN, ENDING, LAYOUT, OTHER, inserts, rows
from tests.support.binlog_command import INT, RECORDED, SERVER, binlog, gtid, transactions
from tests.support.binlog_writer import ColumnDef, LogWriter, image
from tests.unit.mysql.binlog.test_recorded_log import CHANGED, FIRST, SECOND

NAMES = ("id", "a", "d", "f", "s", "l", "b", "at", "ts", "e", "m", "j", "bt")
TYPES = (
    "bigint unsigned", "int", "decimal(20,5)", "double", "varchar(40)", "varchar(10)", "varbinary(20)",
    "datetime(6)", "timestamp(3)", "enum", "set", "json", "bit(9)",
)  # fmt: skip


def shown(values: list[Any]) -> dict[str, Any]:
    found = [{"base64": base64.b64encode(v).decode()} if isinstance(v, bytes) else v for v in values]
    return dict(zip(NAMES, [int(found[0]), *found[1:]], strict=True))


def test_a_recorded_log_is_printed_as_json() -> None:
    told = binlog(RECORDED)

    assert (told.code, told.err) == (0, "")
    found = told.objects
    assert [one["seqno"] for one in found] == list(range(9))
    assert [one["kind"] for one in found] == ["ddl"] * 2 + ["transaction"] * 6 + ["ddl"]
    assert [one["gtid"] for one in found] == [f"{SERVER}:{n}" for n in (1, 2, 3, 4, 5, 6, "tagged:1", 7, 8)]
    assert [one["shard"] for one in found] == ["#UNKNOWN"] * 2 + ["shop"] * 6 + ["#UNKNOWN"]
    assert found[2] | {"changes": ...} == {
        "seqno": 2,
        "event_id": "mysql-9.7.000001:0000000000001310;59",
        "gtid": f"{SERVER}:3",
        "server_id": 1,
        "commit_time": "2026-11-21T08:38:48.939985Z",
        "kind": "transaction",
        "shard": "shop",
        "changes": ...,
    }
    insert = {"schema": "shop", "table": "t", "action": "INSERT"}
    insert["columns"] = [{"name": name, "type": kind} for name, kind in zip(NAMES, TYPES, strict=True)]  # type: ignore[assignment]
    rows = [{"before": None, "after": shown(FIRST)}, {"before": None, "after": shown(SECOND)}]
    assert found[2]["changes"] == [insert | {"rows": rows}]
    (update,) = found[3]["changes"]
    assert (update["action"], update["rows"]) == ("UPDATE", [{"before": shown(FIRST), "after": shown(CHANGED)}])
    delete, savepoint, kept = found[4]["changes"]
    assert savepoint["sql"] == "SAVEPOINT `s`"
    assert (delete["action"], delete["rows"]) == ("DELETE", [{"before": shown(CHANGED), "after": None}])
    assert (kept["action"], kept["rows"][0]["after"]["s"]) == ("INSERT", "kept")
    (created,) = found[0]["changes"]
    assert (created["schema"], created["sql"]) == ("shop", "CREATE DATABASE shop")
    assert created["options"]["character_set_client"] == "utf8mb4"


def test_a_transaction_is_exactly_this_line(tmp_path: Path) -> None:
    log = LogWriter()
    start, end = transactions(log, 7)
    path = tmp_path / "binlog.000001"
    path.write_bytes(log.data)
    assert start < end
    assert binlog(path).out.decode() == (
        f'{{"seqno":0,"event_id":"binlog.000001:{end:016};7","gtid":"00010203-0405-0607-0809-0a0b0c0d0e0f:7",'
        '"server_id":1,"commit_time":"1970-01-01T00:00:07.000000Z","kind":"transaction","shard":"s","changes":['
        '{"schema":"s","table":"t","action":"INSERT","columns":[{"name":"c0","type":"int"}],'
        '"rows":[{"before":null,"after":{"c0":7}}]}]}\n'
    )


def test_a_transaction_without_a_gtid_has_null(tmp_path: Path) -> None:
    log = LogWriter()
    transactions(log, 1, gtids=False)
    path = tmp_path / "binlog.000001"
    path.write_bytes(log.data)
    assert binlog(path).objects[0]["gtid"] is None


# The pieces of a transaction


def printed(*pieces: list[Rows | Statement]) -> bytes:
    printer = JsonPrinter()
    printer.begin(BEGIN)
    body = b"".join(printer.batch(Seqno(0), TransactionBatch(None, changes, None)) for changes in pieces)
    return printer.header(Seqno(0), ENDING) + body + printer.footer()


def test_a_transaction_in_batches_is_printed_the_same() -> None:
    a, b, sql = inserts(1, 2, 3), inserts(4, layout=OTHER), Statement("s", 'drop table "x"\n', {})
    whole = printed([a, b, sql, a])
    assert printed([inserts(1)], [inserts(2)], [inserts(3), b], [], [sql], [inserts(1, 2)], [inserts(3)]) == whole
    changes = json.loads(whole)["changes"]
    assert [change.get("table", change.get("sql")) for change in changes] == ["t", "u", 'drop table "x"\n', "t"]
    assert [row["after"]["a"] for row in changes[0]["rows"]] == [1, 2, 3]


def test_another_action_or_table_is_another_change() -> None:
    delete = rows(LAYOUT, Action.DELETE, ([1, "x"], None))
    found = json.loads(printed([inserts(1)], [delete], [inserts(1, layout=OTHER)]))["changes"]
    assert [(change["action"], change["table"]) for change in found] == [
        ("INSERT", "t"), ("DELETE", "t"), ("INSERT", "u"),
    ]  # fmt: skip


def test_a_column_that_is_absent_is_left_out() -> None:
    update = rows(LAYOUT, Action.UPDATE, ([1], ["y"]), ([2], [None]), before=b"\1", after=b"\2")
    empty = rows(LAYOUT, Action.INSERT, (None, []), after=b"\0")
    found = json.loads(printed([update, inserts(3), empty]))["changes"]
    assert [row for change in found for row in change["rows"]] == [
        {"before": {"a": 1}, "after": {"b": "y"}},
        {"before": {"a": 2}, "after": {"b": None}},
        {"before": None, "after": {"a": 3, "b": "x"}},
        {"before": None, "after": {}},
    ]
    assert [column["name"] for column in found[0]["columns"]] == ["a", "b"]


# Values


def value_text(value: object, *, whole: bool = False, single: bool = False) -> str:
    row = rows(LAYOUT, Action.INSERT, (None, [value]))
    text = JsonRows([b'"v":'], [whole], [single]).printed(row.data, row.ends).decode()
    assert text.startswith('{"before":null,"after":{"v":')
    return text.removeprefix('{"before":null,"after":{"v":').removesuffix("}}")


INT64 = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.one_of(st.none(), INT64, FLOATS, st.text(), st.binary()), min_size=1, max_size=8))
def test_any_values_are_read_back_by_another_reader(values: list[Any]) -> None:
    row = rows(LAYOUT, Action.UPDATE, (values, values))
    keys = [f'"{at}":'.encode() for at in range(len(values))]
    text = JsonRows(keys, [False] * len(values), [False] * len(values)).printed(row.data, row.ends)
    assert b"\n" not in text
    expected = [{"base64": base64.b64encode(v).decode()} if isinstance(v, bytes) else v for v in values]
    found = json.loads(text)
    for side in ("before", "after"):
        assert list(found[side].values()) == expected
        assert [type(v) for v in found[side].values()] == [type(v) for v in expected]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_the_shortest_text_that_reads_back_as_it(number: float) -> None:
    text = value_text(number, single=True)
    assert struct.pack("<f", float(text)) == struct.pack("<f", number)
    digits = len(text.lstrip("-").partition("e")[0].replace(".", "").strip("0"))
    if digits > 1:
        assert struct.pack("<f", float(f"{number:.{digits - 1}g}")) != struct.pack("<f", number)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-(2**63), "-9223372036854775808"),
        (2**63 - 1, "9223372036854775807"),
        (0, "0"),
        (-0.0, "-0.0"),
        (5.0, "5.0"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        ('"\\\n\r\t\0\x1f\x7f/é\u2028\U0001f600', '"\\"\\\\\\n\\r\\t\\u0000\\u001f\x7f/é\u2028\U0001f600"'),
        (b"", '{"base64":""}'),
        (b"a", '{"base64":"YQ=="}'),
        (b"ab", '{"base64":"YWI="}'),
        (b"abc", '{"base64":"YWJj"}'),
    ],
)
def test_a_value_has_exactly_this_text(value: object, text: str) -> None:
    assert value_text(value) == text


def test_integers_above_63_bits_are_numbers() -> None:
    assert value_text("18446744073709551615", whole=True) == "18446744073709551615"
    for wrong in ("", "1e5", "1" * 21, '1","x":"'):
        with pytest.raises(ValueError):
            value_text(wrong, whole=True)


def test_floats_are_shown_as_floats() -> None:
    tenth = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    assert value_text(tenth) == "0.10000000149011612"
    assert value_text(tenth, single=True) == "0.1"
    assert value_text(3.4028234663852886e38, single=True) == "3.4028235e+38"
    assert value_text(1.401298464324817e-45, single=True) == "1e-45"


@pytest.mark.parametrize(("number", "text"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")])
@pytest.mark.parametrize("single", [True, False])
def test_a_number_that_json_lacks_is_a_string(number: float, text: str, single: bool) -> None:
    assert value_text(number, single=single) == f'"{text}"'


@given(st.binary(max_size=60), st.lists(st.integers(0, 70), max_size=4), st.integers(0, 4))
def test_random_bytes_are_rows_or_refused(data: bytes, ends: list[int], width: int) -> None:
    """Nothing is read outside of the bytes, and nothing else is raised."""
    places = array("Q", ends)
    for read in (
        lambda: JsonRows([b'"k":'] * width, [False] * width, [False] * width).printed(data, places),
        lambda: TungstenRows(b"", [b""] * width, [b""] * width, [False] * width).printed(data, places),
    ):
        try:
            read()
        except ValueError as error:
            assert str(error)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_truncated_row_is_refused(cut: int) -> None:
    row = rows(LAYOUT, Action.INSERT, (None, [1, "text"]))
    short = bytes(row.data)[:-cut]
    with pytest.raises(ValueError):
        JsonRows([b'"a":', b'"b":'], [False] * 2, [False] * 2).printed(short, array("Q", [len(short)]))


def test_a_whole_transaction_of_wide_rows_is_one_line(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    log.table_map([INT])
    for number in range(3000):
        log.rows(30, 1, b"".join(image([struct.pack("<i", number * 100 + at)]) for at in range(100)))
    log.commit()
    path = tmp_path / "binlog.000001"
    path.write_bytes(log.data)
    told = binlog(path)
    assert told.out.count(b"\n") == 1
    assert told.rows == list(range(300_000))


def test_invalid_text_is_bytes_by_option(tmp_path: Path) -> None:
    log = LogWriter()
    gtid(log, 1)
    log.begin()
    log.table_map([ColumnDef(252, b"\x01", collation=28)])  # gbk
    log.rows(30, 1, image([b"\x02\xd6\xd0"]) + image([b"\x02a\xff"]))
    log.commit()
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)

    told = binlog(path)
    assert (told.code, told.out) == (6, b"")
    assert "charset=gbk" in told.err
    assert "bytes=ff at=1" in told.err

    told = binlog(path, "--keep-invalid-text", "s.t.*")
    assert (told.code, told.err) == (0, "")
    (row, other) = told.objects[0]["changes"][0]["rows"]
    assert row["after"] == {"c0": "\u4e2d"}
    assert other["after"] == {"c0": {"base64": "Yf8="}}
