"""`thl binlog` on the files of a real server: printed values equal those of a SELECT."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.binlog.test_types import BYTES, DOUBLE, EXACT, TEXT, allowing, cases
from tests.support.servers.environment import SqlServer

SCHEMA = "binlog_command"


def binlog(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "connector", "binlog", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def cursor(mysql_server: SqlServer) -> Iterator[Any]:
    connection = allowing(mysql_server)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
        cursor.execute(f"CREATE DATABASE {SCHEMA}")
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute("FLUSH BINARY LOGS")
        yield cursor
    connection.close()


def files(cursor: Any) -> list[Path]:
    """The server's files, without the one that it is writing."""
    cursor.execute("FLUSH BINARY LOGS")
    cursor.execute("SELECT @@datadir")
    folder = Path(cursor.fetchone()[0])
    if not folder.is_dir():
        pytest.skip("the server's files are not on this machine")
    cursor.execute("SHOW BINARY LOGS")
    return [folder / row[0] for row in cursor.fetchall()[:-1]]


def said_of(cursor: Any, table: str, how: str, definition: str) -> list[Any]:
    """Every value of a column, made comparable by the server."""
    shown = {TEXT: "CONVERT(v USING utf8mb4)", EXACT: "CAST(v AS CHAR)", BYTES: "HEX(v)", DOUBLE: "CAST(v AS DOUBLE)"}
    what = shown[how]
    if definition.startswith("bit"):
        what = f"LPAD(HEX(v), {(int(definition[4:-1]) + 7) // 8 * 2}, '0')"
    elif "char" in definition or "text" in definition:
        what = "HEX(CONVERT(v USING utf8mb4))"
    cursor.execute(f"SELECT {what} FROM {table} ORDER BY id")
    return [row[0] for row in cursor.fetchall()]


def same(value: Any, said: Any, how: str, definition: str) -> bool:
    if how == BYTES:
        return base64.b64decode(value["base64"], validate=True) == bytes.fromhex(said)
    if how == DOUBLE:
        form = "<f" if definition == "float" else "<d"
        return isinstance(value, float) and struct.pack(form, value) == struct.pack(form, said)
    if how == EXACT:
        return isinstance(value, int) and str(value).zfill(4 if definition == "year" else 1) == said
    if "char" in definition or "text" in definition:
        return bool(value == bytes.fromhex(said).decode())
    return bool(value == said)


def test_every_printed_value_equals_its_select(cursor: Any) -> None:
    made = list(cases())
    for number, (_, definition, values) in enumerate(made):
        cursor.execute(f"CREATE TABLE t{number} (id int auto_increment primary key, v {definition})")
        for value in values:
            cursor.execute(f"INSERT INTO t{number} (v) VALUES ({value})")
        cursor.execute(f"INSERT INTO t{number} (v) VALUES (NULL)")
    logs = files(cursor)

    told = binlog(*logs, "--do", f"{SCHEMA}.t*")

    assert (told.returncode, told.stderr) == (0, "")
    arrived: dict[str, list[Any]] = {}
    for line in told.stdout.splitlines():
        for change in json.loads(line)["changes"]:
            for row in change.get("rows", ()):
                arrived.setdefault(change["table"], []).append(row["after"]["v"])
    compared, wrong = 0, []
    for number, (how, definition, _) in enumerate(made):
        *values, null = arrived[f"t{number}"]
        *said, nothing = said_of(cursor, f"t{number}", how, definition)
        assert null is nothing is None
        assert len(values) == len(said)
        compared += len(said)
        pairs = zip(values, said, strict=True)
        wrong += [(definition, value, row) for value, row in pairs if not same(value, row, how, definition)]
    assert not wrong
    assert compared > 150


def test_folder_salvage_and_tungsten_layout_print_the_same_transactions(cursor: Any) -> None:
    cursor.execute("CREATE TABLE u (id int primary key, t text)")
    for number in range(50):
        cursor.execute("INSERT INTO u VALUES (%s, %s)", (number, "x" * number))
    cursor.execute("UPDATE u SET t = REVERSE(t), id = id + 100")
    logs = files(cursor)

    found = binlog(*logs, "--do", SCHEMA)
    assert found.returncode == 0
    assert found.stdout == binlog(*logs, "--do", SCHEMA, "--salvage").stdout
    layout = binlog(*logs, "--do", SCHEMA, "--format", "tungsten").stdout
    events = [json.loads(line)["event_id"] for line in found.stdout.splitlines()]
    assert [line.removeprefix("- EVENTID = ") for line in layout.splitlines() if line[:9] == "- EVENTID"] == events
    gtid = json.loads(found.stdout.splitlines()[-1])["gtid"]
    last = binlog(*logs, "--from-gtid", gtid, "--stop-after", 1).stdout
    assert [row["after"]["id"] for row in json.loads(last)["changes"][0]["rows"]] == list(range(100, 150))


def test_log_without_checksums_is_read_and_its_damaged_format_description_refused(cursor: Any, tmp_path: Path) -> None:
    cursor.execute("CREATE TABLE plain (id int primary key)")
    cursor.execute("SET GLOBAL binlog_checksum = NONE")
    try:
        cursor.execute("INSERT INTO plain VALUES (7)")
        log = files(cursor)[-1]
    finally:
        cursor.execute("SET GLOBAL binlog_checksum = DEFAULT")
    told = binlog(log)
    assert told.returncode == 0
    assert json.loads(told.stdout)["changes"][0]["rows"] == [{"before": None, "after": {"id": 7}}]
    data = bytearray(log.read_bytes())
    data[25] ^= 8  # of the server's version: 8 or 9 becomes 0 or 1
    damaged = tmp_path / log.name
    damaged.write_bytes(data)
    refused = binlog(damaged)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "server=" in refused.stderr
