"""`--salvage` leaves out an incident, an unknown event or a LOAD DATA alone, and hints fit files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.binlog_command import INT, binlog, gtid, transactions
from tests.support.binlog_writer import LogWriter, image

INCIDENT = struct.pack("<HB", 1, 3) + b"why"
LOAD_ALONE = struct.pack("<IIBHH", 7, 0, 1, 0, 0) + struct.pack("<IIIB", 9, 0, 1, 0) + b"s\0LOAD"


def row(log: LogWriter, number: int) -> None:
    log.rows(30, 1, image([struct.pack("<i", number)]))


@pytest.mark.parametrize(
    ("code", "body"), [(26, INCIDENT), (99, b"what"), (18, LOAD_ALONE), (9, struct.pack("<I", 9) + b"x"), (20, b"r")]
)
@pytest.mark.parametrize("gtids", [True, False])
def test_salvage_of_an_event_within_a_transaction_costs_only_it(
    tmp_path: Path, code: int, body: bytes, gtids: bool
) -> None:
    log = LogWriter()
    transactions(log, 1, gtids=gtids)
    if gtids:
        gtid(log, 2)
    log.begin()
    log.table_map([INT])
    row(log, 2)
    at = len(log.data)
    log.event(code, body)
    size = len(log.data) - at
    log.table_map([INT])
    row(log, 3)
    log.commit()
    transactions(log, 4, gtids=gtids)
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)

    refused = binlog(path)
    assert refused.code in {5, 6}
    assert refused.rows == [1]
    assert f"pos={at} event=" in refused.err
    saved = binlog(path, "--salvage")
    assert (saved.rows, saved.code) == ([1, 2, 3, 4], 5)
    assert len(saved.objects) == 3
    assert f"left out {size} bytes, from {at} to {at + size}: " in saved.err


@pytest.mark.parametrize(("code", "body"), [(26, INCIDENT), (99, b"what"), (18, LOAD_ALONE)])
def test_salvage_of_an_event_that_is_a_transaction_costs_only_it(tmp_path: Path, code: int, body: bytes) -> None:
    log = LogWriter()
    transactions(log, 1)
    gtid(log, 2)
    log.event(code, body)
    transactions(log, 3)
    gtid(log, 4)
    log.event(code, body)
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)
    saved = binlog(path, "--salvage")
    assert (saved.rows, saved.code) == ([1, 3], 5)
    assert saved.err.count("left out") == 3  # each of two events, and their sum


def test_values_of_a_load_data_that_is_left_out_go_with_it(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    log.event(5, struct.pack("<BQ", 2, 41))
    log.event(18, LOAD_ALONE)
    log.query(b"INSERT INTO t VALUES (1)")
    log.commit()
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)
    (found,) = binlog(path, "--salvage").objects
    (change,) = found["changes"]
    assert change["sql"] == "INSERT INTO t VALUES (1)"
    assert "insert_id" not in change["options"]


def test_an_encrypted_rest_is_not_left_out(tmp_path: Path) -> None:
    log = LogWriter()
    transactions(log, 1)
    log.event(164, b"\1" + struct.pack("<I", 1) + bytes(12))
    path = tmp_path / "log.000001"
    path.write_bytes(log.data + b"encrypted" * 40)
    saved = binlog(path, "--salvage")
    assert (saved.rows, saved.code) == ([1], 5)
    assert "--read-from-remote-server" in saved.err


@pytest.mark.parametrize(
    ("code", "body", "hint"),
    [(26, INCIDENT, "--salvage"), (99, b"what", "--salvage"), (20, b"rows", "--salvage")],
)
def test_hint_for_a_file_names_an_option_of_the_command(tmp_path: Path, code: int, body: bytes, hint: str) -> None:
    log = LogWriter()
    log.event(code, body)
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)
    (line,) = [line for line in binlog(path).err.splitlines() if "hint: " in line]
    assert hint in line
    assert not any(word in line for word in ("SET GLOBAL", "source.", "service"))


def test_hint_for_invalid_text_in_a_file_names_the_commands_option(tmp_path: Path) -> None:
    from tests.support.binlog_writer import ColumnDef

    log = LogWriter()
    log.begin()
    log.table_map([ColumnDef(15, struct.pack("<H", 40), collation=255)])
    log.rows(30, 1, image([b"\1\xff"]))
    log.commit()
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)
    told = binlog(path)
    assert told.code == 6
    assert "--keep-invalid-text" in told.err
    assert "source." not in told.err
