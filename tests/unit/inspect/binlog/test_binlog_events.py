"""`thl binlog --events`: every event of a file with all its fields."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.support.binlog_command import INT, RECORDED, UUID, binlog, transactions
from tests.support.binlog_writer import LogWriter, image
from tests.support.old_log import OldLog, described, event

MARIADB = RECORDED.with_name("mariadb-11.4.000001")


def events(*arguments: object, stdin: bytes = b"") -> list[dict[str, Any]]:
    told = binlog(*arguments, "--events", "--format", "json", stdin=stdin)
    assert (told.code, told.err) == (0, "")
    return told.objects


def fields(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one["fields"] for one in found if one["type"] == name]


@pytest.mark.parametrize("file", [RECORDED, MARIADB])
def test_every_event_of_a_recorded_file_has_its_header(file: Path) -> None:
    """Positions, sizes and types are those of a walk over the bytes; events in a compressed transaction come behind."""
    data, at, expected = file.read_bytes(), 4, []
    while at < len(data):
        timestamp, code, server, size, end, flags = struct.unpack_from("<IBIIIH", data, at)
        checksum = f"{int.from_bytes(data[at + size - 4 : at + size], 'little'):08x}"
        expected.append((at, code, timestamp, server, size, end, bool(flags & 1), checksum))
        at += size
    found = events(file)
    outer = [one for one in found if "offset_in_payload" not in one]
    assert [
        (
            one["position"], one["code"], one["timestamp"], one["server_id"], one["size"], one["next_position"],
            "IN_USE" in one["flags"], one["checksum"],
        )
        for one in outer
    ] == expected  # fmt: skip
    for number, one in enumerate(found):
        if one["type"] == "TRANSACTION_PAYLOAD":
            inner = [other for other in found[number + 1 :] if other["position"] == one["position"]]
            assert sum(other["size"] for other in inner) == one["fields"]["uncompressed_size"]
            assert [other["type"] for other in inner][:2] == ["QUERY", "TABLE_MAP"]
    assert (file is RECORDED) == any("offset_in_payload" in one for one in found)


def test_fields_of_a_mysql_file_are_those_of_its_events() -> None:
    found = events(RECORDED)
    (start,) = fields(found, "FORMAT_DESCRIPTION")
    assert (start["binlog_version"], start["server_version"], start["checksum_algorithm"]) == (4, "9.7.4-2", "CRC32")
    assert (start["created"], start["header_length"], start["in_use"]) == ("2026-11-21T08:38:48Z", 19, False)
    assert start["fixed_part_lengths"]["QUERY(2)"] == 13
    assert fields(found, "PREVIOUS_GTIDS") == [{"gtids": ""}]
    gtid = fields(found, "GTID")[0]
    assert gtid == {
        "gtid": "cb11a404-e581-11f1-bd7c-02fc00000001:1",
        "flags": ["MAY_HAVE_STATEMENTS"],
        "last_committed": 0,
        "sequence_number": 1,
        "immediate_commit_time": "2026-11-21T08:38:48.918526Z",
        "original_commit_time": "2026-11-21T08:38:48.918526Z",
        "transaction_length": 185,
        "immediate_server_version": 90704,
        "original_server_version": 90704,
    }
    create = fields(found, "QUERY")[0]
    assert create["variables"]["sql_mode"] == (
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
        "NO_ENGINE_SUBSTITUTION"
    )
    assert create["variables"]["collation_connection"] == "utf8mb4_0900_ai_ci"
    assert create["variables"]["ddl_xid"] == "301913"
    assert (create["thread_id"], create["sql"], create["noted_schemas"]) == (59, "CREATE DATABASE shop", ["shop"])
    assert create["began"] == "2023-11-14T22:13:20Z"
    table = fields(found, "TABLE_MAP")[0]
    assert (table["table_id"], table["schema"], table["table"], table["key"]) == (141, "shop", "t", ["id"])
    assert table["columns"][0] == {"name": "id", "type": "bigint unsigned", "nullable": False}
    rows = fields(found, "WRITE_ROWS")[0]
    assert (rows["table"], rows["columns"], rows["flags"]) == ("t", 13, ["STATEMENT_END", "USE_SQL_FOREIGN_KEY"])
    assert rows["after_columns"] == [column["name"] for column in table["columns"]]
    printed = [change for one in binlog(RECORDED).objects for change in one["changes"] if "rows" in change]
    listed = [one for one in found if "rows" in one["fields"]]
    assert [row for one in listed for row in one["fields"]["rows"]] == [
        row for change in printed for row in change["rows"]
    ]
    assert fields(found, "XID")[0] == {"xid": 301915}
    assert fields(found, "ROTATE") == [{"next_file_position": 4, "next_file": "binlog.000002"}]
    assert fields(found, "GTID_TAGGED")[0]["gtid"].count(":") == 2
    assert fields(found, "ROWS_QUERY")[0]["sql"].upper().startswith(("INSERT", "UPDATE", "DELETE"))


def test_fields_of_a_mariadb_file_are_those_of_its_events() -> None:
    found = events(MARIADB)
    gtids = fields(found, "MARIADB_GTID")
    assert {one["gtid"].split("-")[0] for one in gtids} == {"0", "7"}
    assert any("STANDALONE" in one["flags"] for one in gtids)
    assert any("START_ALTER" in one["flags"] for one in gtids)
    assert fields(found, "MARIADB_GTID_LIST")[0] == {"gtids": [], "flags": []}
    assert fields(found, "MARIADB_BINLOG_CHECKPOINT")[0]["file"].endswith("000001")
    assert fields(found, "MARIADB_ANNOTATE_ROWS")[0]["sql"]
    assert fields(found, "MARIADB_QUERY_COMPRESSED")[0]["sql"]
    printed = [change for one in binlog(MARIADB).objects for change in one["changes"] if "rows" in change]
    listed = [one for one in found if "rows" in one["fields"]]
    assert {one["type"] for one in listed} >= {"MARIADB_WRITE_ROWS_COMPRESSED_V1"}
    assert [row for one in listed for row in one["fields"]["rows"]] == [
        row for change in printed for row in change["rows"]
    ]


def test_statement_parts_old_loads_and_encryption_are_shown() -> None:
    log = LogWriter()
    log.event(5, struct.pack("<BQ", 2, 41))
    log.event(13, struct.pack("<QQ", 5, 6))
    log.event(14, struct.pack("<I", 1) + b"v" + b"\0\2" + struct.pack("<II", 8, 8) + struct.pack("<q", -5) + b"\0")
    log.event(17, struct.pack("<I", 3) + b"block")
    log.event(26, struct.pack("<HB", 1, 3) + b"why")
    log.event(34, b"\0" + bytes(16) + struct.pack("<q", 0) + b"\2" + struct.pack("<QQ", 3, 4))
    log.event(38, b"\1" + struct.pack("<III", 1, 2, 0) + b"ab")
    log.event(3, b"")
    log.event(99, b"what")
    start = len(log.data)
    log.event(164, b"\1" + struct.pack("<I", 7) + bytes(range(12)))
    told = binlog("-", "--events", "--format", "json", stdin=log.data + b"encrypted" * 9)
    assert told.code == 6
    assert f"pos={start} event=MARIADB_START_ENCRYPTION(164)" in told.err
    assert [(one["type"], one["fields"]) for one in told.objects[1:]] == [
        ("INTVAR", {"insert_id": 41}),
        ("RAND", {"rand_seed1": 5, "rand_seed2": 6}),
        ("USER_VAR", {"name": "v", "value": "-5"}),
        ("BEGIN_LOAD_QUERY", {"file_id": 3, "block_bytes": 5}),
        ("INCIDENT", {"incident": 1, "name": "LOST_EVENTS", "message": "why"}),
        ("ANONYMOUS_GTID", {"gtid": None, "flags": [], "last_committed": 3, "sequence_number": 4}),
        ("XA_PREPARE", {"xid": "X'6162',X'',1", "one_phase": True}),
        ("STOP", {}),
        ("UNKNOWN", {"bytes": b"what".hex()}),
        ("MARIADB_START_ENCRYPTION", {"scheme": 1, "key_version": 7, "nonce": bytes(range(12)).hex()}),
    ]


def test_old_layouts_are_shown_with_their_own_headers() -> None:
    first = OldLog(1)
    at = first.query(b"DELETE FROM t")
    found = events("-", stdin=first.data)
    assert [(one["type"], one["position"], one["next_position"], one["checksum"]) for one in found] == [
        ("START_V3", 4, None, None),
        ("QUERY", at, None, None),
    ]
    assert found[0]["fields"]["binlog_version"] == 1
    assert found[1]["fields"]["sql"] == "DELETE FROM t"
    data = described({}, header=27)
    data += event(len(data), 5, struct.pack("<BQ", 2, 41), extra=b"8 bytes ")
    data += event(len(data), 4, struct.pack("<Q", 4) + b"mysql-bin.000002")
    found = events("-", stdin=data)
    assert found[1]["fields"] == {"insert_id": 41}
    assert found[2]["fields"] == {"next_file_position": 4, "next_file": "mysql-bin.000002"}


def test_events_are_chosen_by_type_server_position_time_and_count(tmp_path: Path) -> None:
    log = LogWriter()
    _, second, third, _ = transactions(log, 1, 2, 3)
    log.server_id = 8
    log.query(b"DROP TABLE t")
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)

    def types(*arguments: object) -> list[str]:
        return [one["type"] for one in events(path, *arguments)]

    assert types("--type", "xid") == ["XID"] * 3
    assert types("--type", "16", "--type", "FORMAT_DESCRIPTION") == ["FORMAT_DESCRIPTION", "XID", "XID", "XID"]
    assert types("--server-id", 8) == ["QUERY"]
    between = ("--from-position", f"log.000001:{second}", "--to-position", f"log.000001:{third}")
    assert types(*between) == ["GTID", "QUERY", "TABLE_MAP", "WRITE_ROWS", "XID"]
    assert types("--stop-after", 2, "--type", "WRITE_ROWS") == ["WRITE_ROWS"] * 2
    assert types("--from-time", "2023-11-14T22:13:21") == []
    assert types("--to-time", "2023-11-14T22:13:19.999999") == []
    assert types("--type", "XID", "--to-time", "2023-11-14T22:13:20") == ["XID"] * 3
    rows = [one["fields"]["rows"] for one in events(path, "--type", "WRITE_ROWS")]
    assert rows == [[{"before": None, "after": {"c0": number}}] for number in (1, 2, 3)]
    unknown = binlog(path, "--events", "--type", "XIDS")
    assert unknown.code == 2
    assert "ANONYMOUS_GTID" in unknown.err


def test_text_has_a_line_for_each_field(tmp_path: Path) -> None:
    log = LogWriter()
    start = len(log.data)
    log.event(33, b"\1" + UUID + struct.pack("<Q", 7))
    told = binlog("-", "--events", "--type", "GTID", stdin=log.data)
    assert told.out.decode().splitlines() == [
        f"-:{start} GTID(33)",
        f'  timestamp=1700000000 time="2023-11-14T22:13:20Z" server_id=1 size=48 next_position={start + 48} flags=[] '
        f'checksum="{log.data[-4:][::-1].hex()}"',
        '  gtid: "00010203-0405-0607-0809-0a0b0c0d0e0f:7"',
        '  flags: ["MAY_HAVE_STATEMENTS"]',
    ]
    log = LogWriter()
    log.begin()
    log.table_map([INT])
    log.rows(30, 1, b"".join(image([struct.pack("<i", number)]) for number in (1, 2)))
    lines = binlog("-", "--events", "--type", "WRITE_ROWS", stdin=log.data).out.decode().splitlines()
    assert lines[-3:] == [
        "  rows:",
        '    {"before": null, "after": {"c0": 1}}',
        '    {"before": null, "after": {"c0": 2}}',
    ]


def test_damage_ends_the_events_with_its_position() -> None:
    data = bytearray(RECORDED.read_bytes())
    whole = events(RECORDED)
    data[whole[3]["position"] + 30] ^= 1
    told = binlog("-", "--events", "--format", "json", stdin=bytes(data))
    assert told.code == 5
    assert len(told.objects) == 3
    assert f"pos={whole[3]['position']} event=QUERY(2) checksum=" in told.err
    cut = binlog("-", "--events", "--format", "json", stdin=RECORDED.read_bytes()[:-5])
    assert (cut.code, len(cut.objects)) == (5, len(whole) - 1)
    assert "ends inside an event" in cut.err


def test_salvage_leaves_out_damaged_events_alone() -> None:
    data = bytearray(RECORDED.read_bytes())
    whole = events(RECORDED)
    last = next(number for number, one in enumerate(whole) if one["type"] == "XID")
    first, second = whole[3]["position"], whole[last]["position"]
    data[first + 30] ^= 1
    data[second + 22] ^= 1
    told = binlog("-", "--events", "--salvage", "--format", "json", stdin=bytes(data))
    assert told.code == 5
    left = [{**one, "file": "-"} for number, one in enumerate(whole) if number not in {3, last}]
    assert told.objects == left
    assert f"left out {whole[3]['size']} bytes, from {first} to {whole[3]['next_position']}: " in told.err
    assert told.err.count("left out") == 3


@pytest.mark.parametrize("arguments", [(), ("--events",)])
def test_a_file_in_use_is_reported_once(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    log = LogWriter()
    transactions(log, 1, 2)
    data = bytearray(log.data)
    data[4 + 17] |= 1
    path = tmp_path / "log.000001"
    path.write_bytes(data)
    told = binlog(path, *arguments)
    assert told.code == 0
    assert told.err == f"thl: {path} is marked as in use: its server is writing it, or died while writing\n"
    path.write_bytes(log.data)
    assert binlog(path, *arguments).err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("--events", "--format", "sql"),
        ("--format", "text"),
        ("--type", "XID"),
        ("--server-id", "1"),
        ("--events", "--from-gtid", "x"),
        ("--events", "--do", "shop"),
        ("--events", "--ignore", "shop"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: tuple[str, ...]) -> None:
    told = binlog(RECORDED, *arguments)
    assert (told.code, told.out) == (2, b"")


def test_values_are_json(tmp_path: Path) -> None:
    assert all(json.loads(line) for line in binlog(RECORDED, "--events", "--format", "json").out.splitlines())
