"""The choice of files that are read and of transactions that are printed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from tests.support.binlog_command import RECORDED, SERVER, UUID, Told, binlog, gtid, transactions
from tests.support.binlog_writer import LogWriter

SYSTEM = RECORDED.with_name("mysql-sys-rows.000001")
OWN = "00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files 9, 10 and 11 with the transactions 1-3, 4-6 and 7-9, and what else lies in such a folder."""
    for number, first in ((9, 1), (10, 4), (11, 7)):
        log = LogWriter()
        transactions(log, first, first + 1, first + 2)
        (tmp_path / f"binlog.{number:06}").write_bytes(log.data)
    (tmp_path / "binlog.index").write_text("./binlog.000009\n")
    (tmp_path / "notes.txt").write_text("")
    return tmp_path


def test_a_folder_is_read_in_the_order_of_its_numbers(folder: Path) -> None:
    (folder / "binlog.000010").rename(folder / "binlog.1000000")
    assert binlog(folder).rows == [1, 2, 3, 7, 8, 9, 4, 5, 6]


def test_files_are_read_in_the_order_in_which_they_are_named_and_numbered_through(folder: Path) -> None:
    told = binlog(folder / "binlog.000011", folder / "binlog.000009")
    assert told.rows == [7, 8, 9, 1, 2, 3]
    assert [one["seqno"] for one in told.objects] == list(range(6))
    assert told.objects[0]["event_id"].startswith("binlog.000011:")


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".zst", zstandard.compress), ("", gzip.compress), ("", zstandard.compress)],
)
def test_compressed_files_are_known_by_what_is_in_them(tmp_path: Path, suffix: str, compress: object) -> None:
    data = RECORDED.read_bytes()
    path = tmp_path / f"mysql-9.7.000001{suffix}"
    path.write_bytes(compress(data[:1000]) + compress(data[1000:]))  # type: ignore[operator]
    assert binlog(path) == binlog(RECORDED)


def test_standard_input_is_read_plain_and_compressed() -> None:
    data = RECORDED.read_bytes()
    told = binlog("-", stdin=data)
    assert told.out.replace(b'"-:', b'"mysql-9.7.000001:') == binlog(RECORDED).out
    assert binlog("-", stdin=gzip.compress(data)).out == told.out
    assert binlog("-", "--salvage", stdin=data).out == told.out


def test_a_folder_of_two_logs_or_of_none_is_refused(folder: Path) -> None:
    (folder / "relay.000001").write_bytes(b"")
    told = binlog(folder)
    assert (told.code, told.out) == (2, b"")
    assert "2 binary logs" in told.err
    (folder / "empty").mkdir()
    assert "0 binary logs" in binlog(folder / "empty").err
    (folder / "relay.000001").unlink()
    (folder / "binlog.000009.gz").write_bytes(b"")
    assert "twice" in binlog(folder).err


def test_a_missing_file_is_refused_before_anything_is_printed(folder: Path) -> None:
    told = binlog(folder / "binlog.000009", folder / "binlog.000012")
    assert (told.code, told.out) == (2, b"")
    assert "binlog.000012" in told.err
    assert binlog("-", "-").code == 2


def test_positions_bound_the_transactions(folder: Path) -> None:
    log = LogWriter()
    first, second, third, end = transactions(log, 4, 5, 6)
    for offset, rows in ((4, [4, 5, 6]), (first, [4, 5, 6]), (first + 1, [5, 6]), (second, [5, 6]), (end, [])):
        assert binlog(folder, "--from-position", f"binlog.000010:{offset}").rows == [*rows, 7, 8, 9]
    for offset, rows in ((4, []), (first, []), (first + 1, [4]), (second, [4]), (third, [4, 5]), (end, [4, 5, 6])):
        assert binlog(folder, "--to-position", f"binlog.000010:{offset}").rows == [1, 2, 3, *rows]
    both = ("--from-position", f"binlog.000009:{second}", "--to-position", f"binlog.000010:{second}")
    assert binlog(folder, *both).rows == [2, 3, 4]


def test_files_outside_of_the_positions_are_not_opened(folder: Path) -> None:
    (folder / "binlog.000009").write_bytes(b"nonsense")
    assert binlog(folder, "--from-position", "binlog.000010:4").code == 0


def test_gtids_bound_the_transactions_inclusively(folder: Path) -> None:
    assert binlog(folder, "--from-gtid", f"{OWN.upper()}:5").rows == [5, 6, 7, 8, 9]
    assert binlog(folder, "--to-gtid", f"{OWN}:5").rows == [1, 2, 3, 4, 5]
    assert binlog(folder, "--from-gtid", f"{OWN}:5", "--to-gtid", f"{OWN}:5").rows == [5]
    assert len(binlog(RECORDED, "--from-gtid", f"{SERVER}:tagged:1").objects) == 3


def test_the_last_gtid_ends_the_output_even_if_its_transaction_is_not_selected(folder: Path) -> None:
    assert binlog(folder, "--from-gtid", f"{OWN}:5", "--to-gtid", f"{OWN}:4").rows == []
    behind = transactions(LogWriter(), 4)[0] + 1
    assert binlog(folder, "--from-position", f"binlog.000010:{behind}", "--to-gtid", f"{OWN}:4").rows == []


def test_an_unknown_gtid_is_refused(folder: Path) -> None:
    told = binlog(folder, "--from-gtid", f"{OWN}:50")
    assert (told.code, told.out) == (2, b"")
    assert f"gtid={OWN}:50" in told.err
    assert binlog(folder, "--to-gtid", f"{OWN}:50").code == 2


def test_a_filtered_transaction_is_a_bound_too(tmp_path: Path) -> None:
    log = LogWriter()
    transactions(log, 1)
    gtid(log, 2)
    log.begin()
    log.commit()
    transactions(log, 3)
    path = tmp_path / "binlog.000001"
    path.write_bytes(log.data)
    assert UUID.hex() == OWN.replace("-", "")
    assert binlog(path, "--from-gtid", f"{OWN}:2").rows == [3]
    assert binlog(path, "--to-gtid", f"{OWN}:2").rows == [1]


def test_times_bound_the_commit_time(folder: Path) -> None:
    assert binlog(folder, "--from-time", "1970-01-01T00:00:05").rows == [5, 6, 7, 8, 9]
    assert binlog(folder, "--to-time", "1970-01-01T00:00:05Z").rows == [1, 2, 3, 4, 5]
    assert binlog(folder, "--to-time", "1970-01-01T00:00:04.999999Z").rows == [1, 2, 3, 4]
    zoned = ("--from-time", "1970-01-01T01:00:04.000001+01:00", "--to-time", "1970-01-01 00:00:06")
    assert binlog(folder, *zoned).rows == [5, 6]


def test_stop_after_ends_the_output(folder: Path) -> None:
    assert binlog(folder, "--stop-after", "4", "--from-gtid", f"{OWN}:2").rows == [2, 3, 4, 5]
    (folder / "binlog.000011").write_bytes(b"not read")
    assert binlog(folder, "--stop-after", "6").code == 0


def test_filters_work_as_in_the_configuration(folder: Path) -> None:
    assert binlog(folder, "--do", "s.t").rows == list(range(1, 10))
    assert binlog(folder, "--do", "s.u").out == b""
    assert binlog(folder, "--ignore", "s.?").out == b""
    assert "--do" in binlog(folder, "--do", ".t").err or binlog(folder, "--do", ".t").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from-position", "4"),
        ("--to-position", "f:x"),
        ("--from-time", "noon"),
        ("--stop-after", "0"),
        ("--format", "x"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(arguments: tuple[str, str]) -> None:
    told = binlog(RECORDED, *arguments)
    assert (told.code, told.out) == (2, b"")
    assert arguments[0] in told.err


def test_a_position_in_another_file_is_refused(folder: Path) -> None:
    told = binlog(folder, "--to-position", "binlog.000008:4")
    assert (told.code, told.out) == (2, b"")
    assert "binlog.000008" in told.err


def test_changes_of_system_schemas_are_printed() -> None:
    """mysqlbinlog shows 30 transactions, 82 to 111; two of them have rows of `mysql.zz` and `sys.zz`."""
    told = binlog(SYSTEM)
    assert [one["gtid"].rpartition(":")[2] for one in told.objects] == [str(number) for number in range(82, 112)]
    assert tables(told) == ["n.d2", "n.p t", "n.gcol", "mysql.zz", "sys.zz", "n.a"]


def test_patterns_also_select_system_schemas() -> None:
    assert tables(binlog(SYSTEM, "--do", "mysql.*")) == ["mysql.zz"]
    assert tables(binlog(SYSTEM, "--ignore", "sys", "--ignore", "n")) == ["mysql.zz"]


def tables(told: Told) -> list[str]:
    """The tables whose rows were printed."""
    return [
        f"{change['schema']}.{change['table']}"
        for one in told.objects
        for change in one["changes"]
        if "table" in change
    ]
