"""The text of the statement that changed rows: published with its own rows, cut if long."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.filters import Filters
from connector.log.transaction.batch import Rows, TransactionBatch
from connector.mysql.binlog.events.query import rows_query
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import changes, images, whole_file
from tests.support.binlog_command import binlog
from tests.support.binlog_writer import ColumnDef, LogWriter, image

ROWS_QUERY, ANNOTATE_ROWS, MARIADB_GTID = 29, 160, 162
LATIN1, GREEK = 8, 25
INT = ColumnDef(3, unsigned=False)
RECORDED = Path("tests/testdata/binlog")


def wanted(size: int = 1000, *, do: tuple[str, ...] = ()) -> Filter:
    return Filter(Filters(do=do), rows_query_bytes=size)


def row(number: int) -> bytes:
    return image([struct.pack("<i", number)])


def asked(log: LogWriter, text: str | bytes) -> None:
    raw = text if isinstance(text, bytes) else text.encode()
    log.event(ROWS_QUERY, bytes([len(raw) & 0xFF]) + raw)


def statement(log: LogWriter, text: str | bytes | None, *numbers: int) -> None:
    """One statement: its text, if it is logged, and an insert of these numbers."""
    if text is not None:
        asked(log, text)
    log.table_map([INT])
    log.rows(30, 1, b"".join(map(row, numbers)))


def told(log: LogWriter, folder: Path, filters: Filter, *, batch_bytes: int = 1 << 20) -> list[tuple[str | None, int]]:
    """Of every row, the statement and the number."""
    path = folder / "log.000001"
    path.write_bytes(log.data)
    found = whole_file(path, filters=filters, batch_bytes=batch_bytes)
    return [
        (change.query, after[0])
        for change in changes(found)
        if isinstance(change, Rows)
        for _, after in images(change)
        if after
    ]


@pytest.fixture
def log() -> LogWriter:
    """Two statements on one table, and one that is not logged, in one transaction; one in the next."""
    log = LogWriter()
    log.begin()
    statement(log, "INSERT 1, 2", 1, 2)
    statement(log, "INSERT 3", 3)
    statement(log, None, 4)
    log.commit()
    log.begin()
    statement(log, None, 5)
    log.commit()
    return log


@pytest.mark.parametrize("batch_bytes", [1, 10, 1 << 20])
def test_rows_have_the_statement_that_wrote_them(log: LogWriter, tmp_path: Path, batch_bytes: int) -> None:
    assert told(log, tmp_path, wanted(), batch_bytes=batch_bytes) == [
        ("INSERT 1, 2", 1), ("INSERT 1, 2", 2), ("INSERT 3", 3), (None, 4), (None, 5),
    ]  # fmt: skip


def test_rows_of_a_table_stay_together_without_statements(log: LogWriter, tmp_path: Path) -> None:
    assert {query for query, _ in told(log, tmp_path, Filter(Filters()))} == {None}
    first = next(item for item in whole_file(tmp_path / "log.000001") if isinstance(item, TransactionBatch))
    assert len(first.changes) == 1


def test_the_rows_of_one_statement_may_be_in_several_events_and_tables(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    asked(log, "UPDATE both")
    log.table_map([INT], table_id=11)
    log.table_map([INT], table_id=12)
    head = struct.pack("<Q", 11)[:6] + b"\0\0\2\0\1\xff"  # without the flag that ends a statement
    log.event(30, head + row(1))
    log.event(30, head + row(2))
    log.rows(30, 1, row(3), table_id=12)
    statement(log, None, 4)
    log.commit()
    assert told(log, tmp_path, wanted()) == [("UPDATE both", 1), ("UPDATE both", 2), ("UPDATE both", 3), (None, 4)]


def test_statement_of_an_uncaptured_table_is_not_published(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    statement(log, "INSERT INTO s.t: a secret", 1)
    log.commit()
    assert told(log, tmp_path, wanted(do=("other",))) == []


def test_the_text_is_in_the_sessions_character_set(tmp_path: Path) -> None:
    log = LogWriter()
    log.query(b"BEGIN", state=b"\4" + struct.pack("<HHH", LATIN1, LATIN1, LATIN1))
    statement(log, b"caf\xe9 \x80", 1)
    log.commit()
    assert told(log, tmp_path, wanted()) == [("caf\u00e9 \u20ac", 1)]


def test_invalid_bytes_of_a_statement_are_shown_as_hex() -> None:
    assert rows_query(b"caf\xe9", 4, b"", 100) == "caf\\xe9"
    greek = bytes(11) + struct.pack("<H", 7) + b"\4" + struct.pack("<HHH", GREEK, GREEK, GREEK)
    assert rows_query(b"\xe1\xd2", 2, greek, 100) == "\\xe1\\xd2"  # the second is no letter of it


@given(st.text(), st.integers(1, 40))
def test_long_statement_is_cut_between_characters_and_marked(text: str, limit: int) -> None:
    raw = text.encode()
    found = rows_query(raw[:limit], len(raw), b"", limit)
    if len(raw) <= limit:
        assert found == text
        return
    shown, note = found.split(" … (", 1) if "…" not in text else found.rsplit(" … (", 1)
    assert text.startswith(shown)
    assert limit - 4 < len(shown.encode()) <= limit
    assert note == f"{limit} of {len(raw)} bytes)"


def test_only_the_wanted_part_of_a_huge_statement_is_copied(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    statement(log, b"INSERT" + b" " * (3 << 20), 1)
    log.commit()
    assert told(log, tmp_path, wanted(8)) == [(f"INSERT   … (8 of {(3 << 20) + 6} bytes)", 1)]


def test_statements_count_for_the_size_of_a_batch(tmp_path: Path) -> None:
    """A piece is bounded by its bytes, whatever they are of."""
    log = LogWriter()
    log.begin()
    for number in range(100):
        statement(log, f"{number:03}" + "x" * 997, number)
    log.commit()
    assert len(told(log, tmp_path, wanted())) == 100
    pieces = whole_file(tmp_path / "log.000001", filters=wanted(), batch_bytes=10_000)
    sizes = [
        sum(len(change.query or "") for change in item.changes) for item in pieces if isinstance(item, TransactionBatch)
    ]
    assert max(sizes) <= 12_000


def test_mariadb_annotate_rows_are_read(tmp_path: Path) -> None:
    log = LogWriter(server=b"11.4.5-MariaDB")
    log.event(MARIADB_GTID, struct.pack("<QIB", 1, 0, 0) + bytes(6))
    log.event(ANNOTATE_ROWS, "INSERT é".encode())
    log.table_map([INT])
    log.rows(30, 1, row(1))
    log.commit()
    assert told(log, tmp_path, wanted()) == [("INSERT é", 1)]


def test_recorded_logs_have_their_statements() -> None:
    def texts(name: str) -> list[str]:
        found = whole_file(RECORDED / name, filters=wanted())
        return [change.query for change in changes(found) if isinstance(change, Rows) and change.query]

    assert texts("mysql-9.7.000001") == ["DELETE FROM shop.t WHERE id = 5"]
    assert len(texts("mariadb-11.4.000001")) > 5


def test_statement_is_printed_in_both_layouts(log: LogWriter, tmp_path: Path) -> None:
    asked_twice = LogWriter()
    asked_twice.begin()
    statement(asked_twice, "INSERT\n1, 2; -- é", 1, 2)
    statement(asked_twice, "INSERT 3", 3)
    statement(asked_twice, None, 4)
    asked_twice.commit()
    path = tmp_path / "log.000001"
    path.write_bytes(asked_twice.data)
    (found,) = binlog(path).objects
    assert [(change.get("rows_query"), len(change["rows"])) for change in found["changes"]] == [
        ("INSERT\n1, 2; -- é", 2), ("INSERT 3", 1), (None, 1),
    ]  # fmt: skip
    (found,) = binlog(path, "--rows-query", 3).objects
    assert found["changes"][1]["rows_query"] == "INS … (3 of 8 bytes)"
    (found,) = binlog(path, "--rows-query", 0).objects
    assert [len(change["rows"]) for change in found["changes"]] == [4]
    lines = binlog(path, "--format", "tungsten").out.decode().splitlines()
    (metadata,) = [line for line in lines if line.startswith("- METADATA")]
    assert metadata.endswith("rows_query.0=INSERT\\n1, 2; -- é;rows_query.1=INSERT 3;rows_query.2]")
