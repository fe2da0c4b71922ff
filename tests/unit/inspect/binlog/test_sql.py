"""`thl binlog --format sql`: statements with their settings, rows as BINLOG statements.

tests/integration/binlog/test_sql_format.py executes the output on a server.
"""

from __future__ import annotations

import base64
import re
import struct
from pathlib import Path

import pytest

from connector.errors import Unsupported
from tests.support.binlog import row_changes, whole_file
from tests.support.binlog_command import INT, RECORDED, binlog, gtid, transactions
from tests.support.binlog_writer import LogWriter, image
from tests.support.old_log import OldLog, described, event
from tests.unit.mysql.binlog.test_old_logs import bare_rows, load_body

LATIN1 = b"\x04" + struct.pack("<HHH", 8, 8, 8)
SQL_MODE = b"\x01" + struct.pack("<Q", 1 << 22 | 1 << 2)


def sql(*arguments: object, stdin: bytes = b"") -> bytes:
    told = binlog(*arguments, "--format", "sql", stdin=stdin)
    assert (told.code, told.err) == (0, "")
    return told.out


def executed(text: bytes) -> list[bytes]:
    """The statements between the delimiters, without comments before them."""
    body = text[text.index(b"delimiter /*!*/;\n") + 17 : text.rindex(b"delimiter ;\n")]
    found = [re.sub(rb"^(?:# [^\n]*\n)+", b"", part) for part in body.split(b"\n/*!*/;\n")]
    assert found.pop() == b""
    return found


def rows_in(folder: Path, statements: list[bytes]) -> list[object]:
    """The rows that the BINLOG statements hold, read as a log: the first one is the format description."""
    events = [
        base64.b64decode(b"".join(text.split(b"'")[1].split())) for text in statements if text.startswith(b"BINLOG")
    ]
    first, *rest = events
    begin = struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0BEGIN"
    head = struct.pack("<IBIIIH", 1, 2, 1, 19 + len(begin), 0, 0)
    end = struct.pack("<IBIIIHQ", 1, 16, 1, 27, 0, 0, 9)
    path = folder / "binlog.000001"
    path.write_bytes(b"\xfebin" + first + head + begin + b"".join(rest) + end)
    return [after for _, _, after in row_changes(whole_file(path), "t")]


def test_no_comment_stands_within_a_comment_of_a_version() -> None:
    """The client would not see where it ends."""
    log = LogWriter()
    log.begin()
    log.query(b"INSERT INTO t VALUES (1)", state=LATIN1 + b"\x12" + struct.pack("<H", 255))
    log.commit()
    text = sql("-", stdin=log.data)
    set_collation = b"SET @@session.default_collation_for_utf8mb4 = 255"
    assert b"/*!80011 " + set_collation + b"*/ /* utf8mb4_0900_ai_ci */\n" in text


def test_a_transaction_of_rows_is_one_of_binlog_statements(tmp_path: Path) -> None:
    log = LogWriter()
    transactions(log, 1)
    log.begin()
    log.table_map([INT])
    for number in (2, 3):
        log.rows(30, 1, image([struct.pack("<i", number)]))
    log.commit()
    found = executed(sql("-", stdin=log.data))
    words = [text.split()[0] for text in found]
    commit = [b"BEGIN", b"BINLOG", b"COMMIT"]
    assert words == [b"BINLOG", b"SET", *commit, b"SET", b"BEGIN", b"BINLOG", *commit[1:]]
    binlogs = [text for text in found if text.startswith(b"BINLOG")]
    assert rows_in(tmp_path, binlogs) == [[1], [2], [3]]
    assert found[1] == b"SET @@session.gtid_next = '00010203-0405-0607-0809-0a0b0c0d0e0f:1'"
    assert found[5] == b"SET @@session.gtid_next = 'AUTOMATIC'"  # the second has none
    skipped = executed(sql("-", "--skip-gtids", stdin=log.data))
    assert [text for text in skipped if b"gtid_next" in text] == [b"/*!50700 SET @@session.gtid_next = 'AUTOMATIC'*/"]


def test_rows_events_within_a_statement_end_one_each() -> None:
    """A server keeps the table open, and refuses the next TABLE_MAP, until a rows event ends the statement."""
    log = LogWriter()
    log.begin()
    log.table_map([INT])
    log.rows(30, 1, image([struct.pack("<i", 2)]), flags=0)
    log.rows(30, 1, image([struct.pack("<i", 3)]))
    log.commit()
    binlogs = [text for text in executed(sql("-", stdin=log.data)) if text.startswith(b"BINLOG")]
    flags = []
    for text in binlogs[1:]:
        events = base64.b64decode(b"".join(text.split(b"'")[1].split()))
        rows = events[int.from_bytes(events[9:13], "little") :]
        flags.append(int.from_bytes(rows[19 + 6 : 19 + 8], "little"))
    assert flags == [1, 1]


def test_rows_of_version_1_become_version_2(tmp_path: Path) -> None:
    """MySQL since 8.4 refuses the old ones; its format description is that of a server that knows the new ones."""
    found = executed(sql("-", stdin=bare_rows(b"5.1.23-rc-log", 1)))
    binlogs = [text for text in found if text.startswith(b"BINLOG")]
    assert rows_in(tmp_path, binlogs) == [[1]]
    events = base64.b64decode(b"".join(binlogs[1].split(b"'")[1].split()))
    assert events[int.from_bytes(events[9:13], "little") + 4] == 30


def test_statements_keep_their_bytes_and_settings() -> None:
    log = LogWriter()
    log.event(5, struct.pack("<BQ", 2, 41))
    log.event(14, struct.pack("<I", 2) + b"\xc3\xa9" + b"\0\2" + struct.pack("<II", 8, 8) + struct.pack("<q", -5))
    log.query(b"INSERT INTO t VALUES (NULL, 'caf\xe9')", state=SQL_MODE + LATIN1)
    log.query(b"INSERT INTO t VALUES (2)", state=SQL_MODE + LATIN1)
    found = executed(sql("-", stdin=log.data))
    assert found == [
        b"BEGIN",
        b"SET @@session.sql_mode = 4194308 /* ANSI_QUOTES,STRICT_ALL_TABLES */",
        b"SET @@session.auto_increment_increment = 1",
        b"SET @@session.auto_increment_offset = 1",
        b"/*!\\C latin1 */",
        b"SET @@session.character_set_client = latin1",
        b"SET @@session.collation_connection = 8 /* latin1_swedish_ci */",
        b"SET @@session.collation_server = 8 /* latin1_swedish_ci */",
        b"SET @@session.collation_database = DEFAULT",
        b"SET @@session.lc_time_names = 0",
        b"SET @@session.timestamp = 1700000000.000000",
        b"SET @@session.insert_id = 41",
        b"SET @@session.character_set_client = utf8mb4",
        "SET @`é` = -5".encode(),
        b"SET @@session.character_set_client = latin1",
        b"USE `s`",
        b"INSERT INTO t VALUES (NULL, 'caf\xe9')",
        b"COMMIT",
        b"BEGIN",
        b"SET @@session.timestamp = 1700000000.000000",
        b"INSERT INTO t VALUES (2)",
        b"COMMIT",
    ]


def test_settings_of_a_transaction_that_is_not_printed_are_printed_with_the_next_one(tmp_path: Path) -> None:
    log = LogWriter()
    for number in (1, 2):
        gtid(log, number, committed=number * 1_000_000)
        log.query(b"INSERT INTO t VALUES (1)", state=SQL_MODE)
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)
    found = executed(sql(path, "--from-time", "1970-01-01T00:00:02"))
    assert found.count(b"COMMIT") == 1
    assert b"SET @@session.sql_mode = 4194308 /* ANSI_QUOTES,STRICT_ALL_TABLES */" in found
    assert b"USE `s`" in found


def test_text_with_the_delimiter_has_another_one() -> None:
    log = LogWriter()
    log.query(b"INSERT INTO t VALUES ('/*!*/;', '/*0*/;')")
    text = sql("-", stdin=log.data)
    assert (
        b"\ndelimiter /*1*/;\nINSERT INTO t VALUES ('/*!*/;', '/*0*/;')\n/*1*/;\ndelimiter /*!*/;\nCOMMIT\n/*!*/;\n"
    ) in text


def test_a_definition_has_no_transaction_and_a_dropped_schema_is_chosen_again() -> None:
    log = LogWriter()
    for text in (b"CREATE TABLE t (a INT)", b"DROP DATABASE s", b"CREATE DATABASE s", b"CREATE TABLE t (a INT)"):
        log.query(text, state=b"")
    found = [text for text in executed(sql("-", stdin=log.data)) if not text.startswith((b"SET", b"/*!\\C"))]
    assert found == [
        b"USE `s`", b"CREATE TABLE t (a INT)", b"DROP DATABASE s", b"USE `s`", b"CREATE DATABASE s", b"USE `s`",
        b"CREATE TABLE t (a INT)",
    ]  # fmt: skip


def test_load_data_of_an_old_log_reads_the_file_of_the_folder(tmp_path: Path) -> None:
    log = OldLog()
    log.event(8, load_body(8, block=b"1|2\n"))
    log.event(9, struct.pack("<I", 3) + b"3|4\n")
    log.event(10, struct.pack("<I", 3))
    refused = binlog("-", "--format", "sql", stdin=log.data)
    assert refused.code == 2
    assert "--load-folder" in refused.err
    folder = tmp_path / "o'files"
    folder.mkdir()
    found = executed(sql("-", "--load-folder", folder, stdin=log.data))
    (file,) = folder.iterdir()
    assert file.read_bytes() == b"1|2\n3|4\n"
    assert file.stat().st_mode & 0o777 == 0o600
    quoted = str(file).replace("'", "''")
    start = f"LOAD DATA LOCAL INFILE '{quoted}' REPLACE INTO TABLE `t` FIELDS"
    assert [text for text in found if text.startswith(start.encode())] == [found[-2]]


def test_character_set_that_4_1_logs_by_its_number_is_that_of_the_text() -> None:
    log = OldLog()
    log.query(b"SET ONE_SHOT CHARACTER_SET_CLIENT=8,COLLATION_CONNECTION=8")
    log.query(b"INSERT INTO t VALUES ('caf\xe9')")
    found = executed(sql("-", stdin=log.data))
    assert b"SET @@session.character_set_client = latin1" in found
    assert b"INSERT INTO t VALUES ('caf\xe9')" in found


def test_statement_whose_file_is_not_in_the_log_is_marked() -> None:
    log = OldLog()
    log.event(12, load_body(12))
    text = sql("-", stdin=log.data)
    assert b"# The log does not hold the file that this statement reads.\n" in text
    assert b"\nLOAD DATA INFILE '/data/x\\'y.txt' REPLACE INTO TABLE `t`" in text


def test_relay_log_of_today_with_longer_headers_is_printed() -> None:
    data = described({}, header=27)
    data += event(len(data), 5, struct.pack("<BQ", 2, 41), extra=b"8 bytes ")
    query = struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0INSERT INTO t VALUES (1)"
    data += event(len(data), 2, query, extra=b"8 bytes ")
    assert b"SET @@session.insert_id = 41" in executed(sql("-", stdin=data))


@pytest.mark.parametrize("file", [RECORDED, RECORDED.with_name("mariadb-11.4.000001")])
def test_recorded_files_are_printed_whole(file: Path) -> None:
    text = sql(file, "--skip-gtids")
    assert text.count(b"\nCOMMIT\n") == text.count(b"\nBEGIN\n") > 3
    assert text.startswith(b"# SQL of binary log files")
    assert text.endswith(b"delimiter ;\n/*!50530 SET @@session.pseudo_slave_mode = 0*/;\n")


def test_gtid_of_a_mariadb_is_set_after_its_domain_and_refused_for_a_definition_with_rows() -> None:
    told = binlog(RECORDED.with_name("mariadb-11.4.000001"), "--format", "sql")
    first = told.out.index(b"SET @@session.gtid_domain_id = 0, @@session.server_id = ")
    assert first < told.out.index(b"SET @@session.gtid_seq_no = 1\n")
    assert told.code == Unsupported.exit_code
    assert "CREATE TABLE … SELECT" in told.err
    assert "hint: --skip-gtids" in told.err
