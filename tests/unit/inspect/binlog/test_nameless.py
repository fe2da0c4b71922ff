"""Files without column names: `binlog_row_metadata=MINIMAL`, and servers before 8.0, which log none."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.support.binlog_command import binlog
from tests.support.binlog_writer import ColumnDef, LogWriter, image

LATIN1, BINARY = 8, 63
COLUMNS = [
    ColumnDef(3, unsigned=True),
    ColumnDef(8, unsigned=False),
    ColumnDef(1, unsigned=False),
    ColumnDef(9, unsigned=False),
    ColumnDef(15, b"\x14\x00", collation=LATIN1),
    ColumnDef(254, b"\xfe\x04", collation=BINARY),
    ColumnDef(252, b"\x02", collation=LATIN1),
    ColumnDef(254, b"\xf7\x01", collation=LATIN1, labels=(b"x", b"y")),
    ColumnDef(254, b"\xf8\x08", collation=LATIN1, labels=tuple(b"%d" % n for n in range(64))),
    ColumnDef(246, b"\x04\x02", unsigned=False),
]
BITS = struct.pack("<Q", 1 << 63 | 1)
VALUES = [
    b"\xff\xff\xff\xff",
    struct.pack("<q", -2),
    b"\x07",
    b"\x00\x00\x80",
    b"\x02\xe9a",
    b"\x01a",
    b"\x01\x00b",
    b"\x02",
    BITS,
    b"\x81\x05",
]
NAMES = [f"@{number}" for number in range(1, 11)]


def written(folder: Path, metadata: str) -> Path:
    log = LogWriter(checksum=False)
    log.begin()
    log.table_map(COLUMNS, metadata=metadata, key=[0])
    log.rows(30, len(COLUMNS), image(VALUES))
    log.commit()
    path = folder / f"{metadata}.000001"
    path.write_bytes(log.data)
    return path


def as_json(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Types and values by name."""
    told = binlog(path)
    assert (told.code, told.err) == (0, "")
    (change,) = told.objects[0]["changes"]
    return {c["name"]: c["type"] for c in change["columns"]}, change["rows"][0]["after"]


def base64_of(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode()}


def test_minimal_metadata_leaves_out_names_labels_and_keys(tmp_path: Path) -> None:
    types, values = as_json(written(tmp_path, "MINIMAL"))

    assert list(types) == NAMES
    assert list(types.values()) == [
        *("int unsigned", "bigint", "tinyint", "mediumint", "varchar(20)", "binary(4)", "text", "enum", "set"),
        "decimal(4,2)",
    ]
    assert list(values.values()) == [
        *(4294967295, -2, 7, -8388608, "éa", base64_of(b"a\0\0\0"), "b", 2, str(1 << 63 | 1), "1.05"),
    ]


def test_file_without_metadata_has_no_names(tmp_path: Path) -> None:
    """Both readings of an integer where they differ; text as bytes, not padded."""
    types, values = as_json(written(tmp_path, "NONE"))

    assert list(types) == NAMES
    assert list(types.values())[:7] == [
        *("int", "bigint", "tinyint", "mediumint", "varbinary(20)", "varbinary(4)", "blob"),
    ]
    assert list(values.values()) == [
        *("-1 (4294967295)", f"-2 ({2**64 - 2})", 7, "-8388608 (8388608)"),
        *(base64_of(b"\xe9a"), base64_of(b"a"), base64_of(b"b"), 2, str(1 << 63 | 1), "1.05"),
    ]


@pytest.mark.parametrize(("metadata", "first"), [("MINIMAL", "4294967295"), ("NONE", "-1 (4294967295)")])
def test_tungstens_layout_numbers_columns_without_names(tmp_path: Path, metadata: str, first: str) -> None:
    told = binlog("--format", "tungsten", written(tmp_path, metadata))

    assert told.code == 0
    shown = [line.strip() for line in told.out.decode().splitlines() if "(1: @1)" in line or "(8: @8)" in line]
    assert shown == [f"- COL(1: @1) = {first}", "- COL(8: @8) = 2"]


def test_a_file_may_name_columns_from_some_event_on(tmp_path: Path) -> None:
    log = LogWriter()
    for metadata in ("MINIMAL", "FULL", "MINIMAL"):
        log.begin()
        log.table_map(COLUMNS[:1], metadata=metadata)
        log.rows(30, 1, image([b"\1\0\0\0"]))
        log.commit()
    (tmp_path / "log.000001").write_bytes(log.data)

    told = binlog(tmp_path / "log.000001")

    rows = [change["rows"][0]["after"] for found in told.objects for change in found["changes"]]
    assert rows == [{"@1": 1}, {"c0": 1}, {"@1": 1}]


def test_a_generated_invisible_key_has_its_name() -> None:
    """A flag of the TABLE_MAP tells it; the same table without that key is another one."""
    log = LogWriter()
    for flags in (1, 5, 1):
        log.begin()
        log.table_map([ColumnDef(8, unsigned=True), ColumnDef(3, unsigned=False)], metadata="MINIMAL", flags=flags)
        log.rows(30, 2, image([struct.pack("<Q", 1), struct.pack("<i", 2)]))
        log.commit()
    told = binlog("-", stdin=log.data)
    assert [change["rows"][0]["after"] for one in told.objects for change in one["changes"]] == [
        {"@1": 1, "@2": 2},
        {"my_row_id": 1, "@2": 2},
        {"@1": 1, "@2": 2},
    ]
    thl = binlog("-", "--format", "tungsten", stdin=log.data).out.decode()
    assert "COL(1: my_row_id)" in thl
    assert thl.count("KEY(1: my_row_id)") == 1
