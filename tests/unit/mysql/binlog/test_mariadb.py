"""MariaDB's binary log: a recorded one, and its own event types, valid and invalid."""

from __future__ import annotations

import random
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.filters import Filters
from connector.errors import ConnectorError, CorruptBinlog, Unsupported
from connector.log.ids import Kind
from connector.log.transaction.batch import PositionAdvance, Statement, TransactionBatch
from connector.log.transaction.position import SourcePosition
from connector.mysql import compression
from connector.mysql.binlog.events import mariadb
from connector.mysql.binlog.events.stream_messages import dump_heartbeat
from connector.mysql.binlog.events.table_map import table_layout, table_map
from connector.mysql.transforms.filters import Filter
from connector.mysql.values.collations import charset_of
from tests.support.binlog import changes, row_changes, whole_file
from tests.unit.mysql.binlog.test_recorded_log import events, resealed

UPDATE_ROWS_V1 = 24
LOG = Path("tests/testdata/binlog/mariadb-11.4.000001")
POINT = bytes(4) + b"\x01\x01\0\0\0" + struct.pack("<dd", 1, 2)
FIRST = [
    1, -7, "12.50000", "h\u00e9llo", "\u00e9\u20ac", b"\0\xff", "2024-02-29 01:02:03.000004",
    "2023-11-14 22:13:20.500", "y", "p,r", '{"a": [1, 2.5]}', b"\1\1",
    bytes.fromhex("123e4567e89b12d3a456426655440000"), "z" * 300, POINT,
]  # fmt: skip
SECOND = [
    "18446744073709551615", None, "-0.00001", "", "", b"", "0001-01-01 00:00:00.000000", None, None, "", "[]",
    b"\0\0", None, "", None,
]  # fmt: skip
CHANGED = [1, -6, *FIRST[2:]]


def test_recorded_log_has_the_recorded_transactions() -> None:
    found = whole_file(LOG)

    def row(n: int, text: str, packed: str | None) -> list[object]:
        return [n, None, None, text, *[None] * 9, packed, None]

    texts = {3: None, 4: "y" * 99, 5: "x" * 99, 6: "w" * 99}
    long = {n: row(n, "q" * 40, text) for n, text in texts.items()}
    short = {n: row(n, "\u00e9", text) for n, text in texts.items()}
    assert row_changes(found, "t") == [
        ("INSERT", None, FIRST),
        ("INSERT", None, SECOND),
        ("UPDATE", FIRST, CHANGED),
        ("DELETE", SECOND, None),
        *(("INSERT", None, long[n]) for n in texts),
        *(("UPDATE", long[n], short[n]) for n in texts),
        *(("DELETE", short[n], None) for n in texts),
    ]
    assert row_changes(found, "m") == row_changes(found, "c") == [("INSERT", None, [1])]
    pieces = [piece for piece in found if isinstance(piece, TransactionBatch) and piece.begin]
    assert [piece.begin.gtid for piece in pieces if piece.begin] == [
        "0-2-1", "0-2-2", "0-2-3", "0-2-4", "7-2-1", *(f"0-2-{n}" for n in (5, 6, 7, 8, 9, 10, 12, 13)),
    ]  # fmt: skip
    kinds = [piece.begin.kind for piece in pieces if piece.begin]
    assert [n for n, kind in enumerate(kinds) if kind is Kind.DDL] == [0, 1, 5, 10, 11, 12]
    assert [item for item in found if isinstance(item, PositionAdvance)] == [
        PositionAdvance(pieces[-2].begin.start if pieces[-2].begin else SourcePosition("", 0), "0-2-11"),
        PositionAdvance(SourcePosition("mariadb-bin.000002", 4), None),
    ]
    altered = [change for change in changes(found) if isinstance(change, Statement)][-2]
    assert (altered.sql, altered.options["alter"]) == ("ALTER TABLE shop.t DROP COLUMN g", "commit")
    assert {piece.ending.commit_time for piece in pieces if piece.ending} == {1_700_000_000_000_000}


def test_recorded_log_has_compressed_events() -> None:
    kinds = {kind for _, _, kind in events(LOG.read_bytes())}
    assert {160, 161, 162, 163, 165, 166, 167, 168} <= kinds


@pytest.mark.long
def test_damage_is_refused_or_decodes(tmp_path: Path) -> None:
    """Also where the checksum is right, the decoder raises the connector's error or returns what it could decode."""
    data = LOG.read_bytes()
    places = events(data)
    dice = random.Random(7)
    refused = 0
    for _ in range(600):
        start, end, _ = dice.choice(places[1:])
        at = dice.randrange(start + 19, end - 4)
        broken = data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
        (tmp_path / "log.000001").write_bytes(broken)
        with pytest.raises(CorruptBinlog) as wrong:
            whole_file(tmp_path / "log.000001")
        assert "checksum" in wrong.value.where
        (tmp_path / "log.000001").write_bytes(resealed(broken, start, end))
        try:
            whole_file(tmp_path / "log.000001")
        except ConnectorError as error:
            refused += 1
            assert error.where["pos"] is not None
    assert refused > 100


def test_update_whose_before_image_lacks_columns_is_refused_unless_it_is_only_shown(tmp_path: Path) -> None:
    data = LOG.read_bytes()
    start, end, _ = next(one for one in events(data) if one[2] == UPDATE_ROWS_V1)
    before = start + 19 + 6 + 2 + 1  # the bitmap of the before image: behind header, table, flags, number of columns
    assert data[before : before + 2] == b"\xff\x7f"
    lacking = data[:before] + b"\xff\x3f" + data[before + 2 :]
    (tmp_path / "log.000001").write_bytes(resealed(lacking, start, end))
    with pytest.raises(Unsupported, match="before image lacks columns") as refused:
        whole_file(tmp_path / "log.000001")
    assert (str(refused.value.where["table"]), refused.value.where["pos"]) == ("shop.t", start)
    with pytest.raises(ConnectorError) as shown:  # that of the value which the image still has
        whole_file(tmp_path / "log.000001", filters=Filter(Filters(), shows=True))
    assert not isinstance(shown.value, Unsupported)


def gtid(number: int, domain: int, flags: int, more: bytes = b"") -> bytes:
    return (struct.pack("<QIB", number, domain, flags) + more).ljust(19, b"\0")


def xid(form: int, gtrid: bytes, bqual: bytes) -> bytes:
    return struct.pack("<IBB", form, len(gtrid), len(bqual)) + gtrid + bqual


@pytest.mark.parametrize(
    ("body", "alone"),
    [
        (gtid(5, 3, 0x0C), False),
        (gtid(5, 3, 0x29), True),
        (gtid(5, 3, 0x0E, bytes(8)), False),
        (gtid(5, 3, 0x29, b"\x02"), True),
        (gtid(5, 3, 0x29, b"\x04" + bytes(8)), True),
        (gtid(5, 3, 0x0C, b"\x11\x01" + bytes(4)), False),
        (gtid(5, 3, 0x0C) + bytes(3000), False),  # padded: a large transaction that became a file of its own
    ],
)
def test_gtid_event_is_decoded(body: bytes, alone: bool) -> None:
    assert mariadb.gtid_event(body, 9) == mariadb.MariaDbGtid("3-9-5", alone)


@pytest.mark.parametrize(
    ("flags", "more", "alone", "prepares"),
    [
        (0x4C, xid(7, b"ab", b"\xff"), False, "X'6162',X'ff',7"),
        (0x4E, bytes(8) + xid(7, b"ab", b"\xff") + b"\x11\x01" + bytes(4), False, "X'6162',X'ff',7"),
        (0x8D, xid(7, b"ab", b"\xff"), True, ""),
        (0x8C, xid(7, b"ab", b"\xff"), True, ""),
    ],
)
def test_gtid_event_of_an_xa_transaction_is_decoded(flags: int, more: bytes, alone: bool, prepares: str) -> None:
    assert mariadb.gtid_event(gtid(5, 3, flags, more), 9) == mariadb.MariaDbGtid("3-9-5", alone, prepares)


@pytest.mark.parametrize(
    ("body", "error", "fields"),
    [
        (gtid(5, 3, 0x4C, xid(7, bytes(65), b"")), CorruptBinlog, {"gtrid": 65, "bqual": 0}),
        (gtid(5, 3, 0x8D, xid(7, b"", bytes(65))), CorruptBinlog, {"gtrid": 0, "bqual": 65}),
        (gtid(5, 3, 0x4C, xid(7, b"abcd", b"e"))[:22], CorruptBinlog, {"needed": 4, "left": 3}),
        (gtid(5, 3, 0x0C, b"\x20"), Unsupported, {"gtid": "3-9-5", "flags": "0x20"}),
        (gtid(5, 3, 0x0C)[:12], CorruptBinlog, {"needed": 1, "left": 0}),
        (gtid(5, 3, 0x0E)[:14], CorruptBinlog, {"needed": 8, "left": 1}),
        (gtid(5, 3, 0x0C, b"\x04\x00\x00\x00\x00\x00\x00\x00")[:20], CorruptBinlog, {"needed": 8, "left": 6}),
    ],
)
def test_unreadable_gtid_event_is_refused(body: bytes, error: type[ConnectorError], fields: dict[str, object]) -> None:
    with pytest.raises(error) as refused:
        mariadb.gtid_event(body, 9)
    assert refused.value.where == fields


def packed(data: bytes, size: int = 2) -> bytes:
    return bytes([0x80 | size]) + len(data).to_bytes(size, "big") + zlib.compress(data)


@given(st.binary(max_size=3000))
def test_compressed_events_expand(data: bytes) -> None:
    rows = bytes(8) + b"\x03\xff" + data
    assert mariadb.plain_rows(rows[:10] + packed(data), second=False, update=False) == rows
    rows = bytes(8) + b"\x04\x00ab" + b"\x09\xff\xff\xff\xff" + data
    assert mariadb.plain_rows(rows[:17] + packed(data, 4), second=True, update=True) == rows
    query = struct.pack("<IIBHH", 1, 2, 4, 0, 3) + b"\x00ab" + b"shop\0" + data
    assert mariadb.plain_query(query[:21] + packed(data)) == query


@pytest.mark.parametrize(
    ("data", "error", "where"),
    [
        (b"\x12\x00\x01" + zlib.compress(b"x"), Unsupported, {"method": 1}),
        (b"\x92\x00\x01" + zlib.compress(b"x"), Unsupported, {"method": 9}),
        (b"\x82\x00\x02" + zlib.compress(b"x"), CorruptBinlog, {"length": 2}),
        (b"\x82\x00\x01" + zlib.compress(b"xx"), CorruptBinlog, {"length": 1}),
        (b"\x82\x00\x01" + zlib.compress(b"x")[:-4], CorruptBinlog, {"length": 1}),
        (b"\x82\x00\x01rubbish", CorruptBinlog, {}),
        (b"\x84\xff\xff\xff\xff" + zlib.compress(b"x"), CorruptBinlog, {"length": 0xFFFFFFFF}),
        (b"\x84\x00", CorruptBinlog, {"needed": 4, "left": 1}),
        (b"", CorruptBinlog, {"needed": 1, "left": 0}),
    ],
)
def test_compressed_data_that_do_not_expand_are_refused(
    data: bytes, error: type[ConnectorError], where: dict[str, object]
) -> None:
    with pytest.raises(error) as raised:
        mariadb.expanded(data)
    assert raised.value.where == where


def test_a_small_event_does_not_become_a_large_one() -> None:
    """What expands to more than it says is not expanded further."""
    bomb = b"\x81\x01" + zlib.compress(bytes(100 << 20))
    tracemalloc.start()
    with pytest.raises(CorruptBinlog) as raised:
        mariadb.expanded(bomb)
    assert raised.value.where == {"length": 1}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20


@given(st.binary(max_size=1000), st.booleans())
def test_values_of_compressed_columns_are_decoded(data: bytes, bare: bool) -> None:
    assert compression.column_value(b"\0" + data) == data
    stream = zlib.compressobj(wbits=-15 if bare else 15)
    body = stream.compress(data) + stream.flush()
    head = bytes([0x82 | (8 if bare else 0)]) + len(data).to_bytes(2, "big")
    assert compression.column_value(head + body) == data
    assert compression.column_value(b"") == b""


def test_column_of_an_unknown_compression_is_refused() -> None:
    with pytest.raises(Unsupported) as raised:
        compression.column_value(b"\x72\x00\x01x")
    assert raised.value.where == {"method": 7}


@given(st.integers(0, 1 << 36), st.integers(0, (1 << 32) - 1), st.integers(19, 1 << 20))
def test_start_of_a_streamed_event_is_extended_to_64_bits(offset: int, skipped: int, size: int) -> None:
    start = offset + skipped
    assert mariadb.start_of((start + size) & 0xFFFFFFFF, size, offset) == start


def test_heartbeat_beyond_4_gib_has_its_position() -> None:
    with pytest.raises(CorruptBinlog):
        dump_heartbeat(b"\xff" * 8 + b"f", False, 0, 4, mariadb=True)
    body = struct.pack("<Q", 5 << 32 | 7) + b"mariadb-bin.000009"
    assert dump_heartbeat(body, False, 0, 4, mariadb=True) == ("mariadb-bin.000009", 5 << 32 | 7)
    assert dump_heartbeat(b"mariadb-bin.000009", False, 900, 4, mariadb=True) == ("mariadb-bin.000009", 900)


def test_collations_of_mariadb_groups_are_known() -> None:
    assert [charset_of(n) for n in (2048, 2303, 2304, 2559, 2560, 2816, 3072, 3327)] == [
        "utf8mb3", "utf8mb3", "utf8mb4", "utf8mb4", "ucs2", "utf16", "utf32", "utf32",
    ]  # fmt: skip
    assert [charset_of(n) for n in (576, 608, 1032, 1069)] == ["utf8mb3", "utf8mb4", "latin1", "utf8mb4"]
    for unknown in (3328, 1024, 500, 2047):
        with pytest.raises(Unsupported) as raised:
            charset_of(unknown)
        assert raised.value.where["collation"] == unknown


def test_times_of_the_old_format_are_refused_only_in_mariadbs_log() -> None:
    definition = b"\x01d\0\x01t\0" + b"\x01\x0b" + b"\x00" + b"\x00" + b"\x04\x02\x01t"
    assert table_layout(table_map(definition))[0].columns[0].type == "time"
    with pytest.raises(Unsupported) as told:
        table_map(definition, mariadb=True)
    assert "mysql56_temporal_format" in (told.value.hint or "")


def test_geometry_counts_as_a_text_column_in_metadata() -> None:
    """The TABLE_MAP of t (g geometry, a text, b char(5) character set latin2), latin1 by default: as 11.4 wrote it."""
    types, metas = b"\xff\xfc\xfe", b"\x04\x02\xfe\x05"
    definition = b"\x01d\0\x01t\0" + b"\x03" + types + b"\x04" + metas + b"\x07"
    definition += b"\x02\x05\x3f\x01\x08\x02\x09" + b"\x04\x06\x01g\x01a\x01b"
    columns = table_layout(table_map(definition, mariadb=True))[0].columns
    assert [(column.type, column.charset) for column in columns] == [
        ("geometry", ""), ("text", "latin1"), ("char(5)", "latin2"),
    ]  # fmt: skip
