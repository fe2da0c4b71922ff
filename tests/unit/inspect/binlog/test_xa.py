"""`thl binlog` prints an XA transaction at its prepare, and its outcome where the log has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.binlog_command import binlog, gtid, transactions
from tests.support.binlog_writer import LogWriter
from tests.unit.mysql.binlog.test_xa import NAME, XID, xa


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A file in which one is prepared, behind a transaction."""
    log = LogWriter()
    transactions(log, 1)
    gtid(log, 2)
    xa(log, 10, 11)
    path = tmp_path / "binlog.000001"
    path.write_bytes(log.data)
    return path


@pytest.fixture
def decided(tmp_path: Path) -> Path:
    """The next file, in which another comes first, then its commit."""
    log = LogWriter()
    transactions(log, 3)
    gtid(log, 4)
    log.query(b"XA COMMIT " + XID)
    path = tmp_path / "binlog.000002"
    path.write_bytes(log.data)
    return path


def test_an_xa_transaction_prints_its_changes_at_its_prepare(prepared: Path, decided: Path) -> None:
    told = binlog(prepared, decided)
    assert told.code == 0
    assert told.err == ""
    assert told.rows == [1, 10, 11, 3]
    kinds = [(found["kind"], found.get("outcome"), found.get("xid")) for found in told.objects]
    assert kinds == [
        ("transaction", None, None),
        ("xa", "prepared", NAME),
        ("transaction", None, None),
        ("xa", "commit", NAME),
    ]
    assert [found["seqno"] for found in told.objects] == [0, 1, 2, 3]
    assert told.objects[3]["changes"] == []


def test_a_pending_xa_transaction_is_reported(prepared: Path) -> None:
    told = binlog(prepared)
    assert told.code == 0
    assert "1 XA transactions are pending" in told.err
    assert NAME in told.err
    assert told.rows == [1, 10, 11]


def test_a_commit_without_its_prepare_is_printed(decided: Path) -> None:
    told = binlog(decided)
    assert [found["kind"] for found in told.objects] == ["transaction", "xa"]
    assert told.err == ""


def test_pending_transactions_are_not_reported_if_the_output_ended_early(prepared: Path) -> None:
    assert binlog("--stop-after", 2, prepared).err == ""


def test_a_one_phase_commit_is_a_transaction(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(xa(LogWriter(), 10, one_phase=True).data)
    told = binlog(path)
    assert [(found["kind"], found["xid"]) for found in told.objects] == [("transaction", NAME)]
    assert (told.rows, told.err) == ([10], "")


def test_tungstens_layout_has_the_xa_state_in_its_metadata(prepared: Path, decided: Path) -> None:
    lines = binlog("--format", "tungsten", prepared, decided).out.decode().splitlines()
    told = [line.rpartition("xid=")[2] for line in lines if line.startswith("- METADATA")]
    assert [line for line in told if NAME in line] == [f"{NAME};xa=prepared]", f"{NAME};xa=commit]"]
