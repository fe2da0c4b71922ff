"""Tungsten's layout, to the letter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connector.listing.as_json import as_object
from connector.listing.choice import Choice
from connector.listing.log import Listed
from connector.listing.tungsten import lines, time_of
from connector.thl.words import Seqno

COLUMNS = [{"name": name} for name in ("id", "name", "photo")]


def a_fragment(*changes: dict[str, Any], **more: Any) -> Listed:
    fragment = {
        "seqno": 3582, "fragno": 0, "last_frag": True, "epoch": 2500, "kind": "transaction", "shard": "test",
        "source_id": "host1", "gtid": None, "event_id": "mysql-bin.000007:0000000625753710;0",
        "commit_time": 1742382452000000, "changes": list(changes),
        "metadata": {"mysql_server_id": "1687011", "dbms_type": "mysql", "service": "firstrep", "shard": "test"},
    }  # fmt: skip
    return Listed("thl.firstrep", 0, 1234, fragment | more, voided=False)


def rows(
    action: str, *images: tuple[list[Any] | None, list[Any] | None], key: tuple[int, ...] = (0,)
) -> dict[str, Any]:
    return {
        "schema": "test", "table": "user", "columns": COLUMNS, "key_columns": list(key), "before_present": b"",
        "after_present": b"", "action": action, "rows": [{"before": b, "after": a} for b, a in images],
    }  # fmt: skip


HEADER = """\
SEQ# = 3582 / FRAG# = 0 (last frag)
- FILE = thl.firstrep-0@1234
- TIME = 2025-03-19 11:07:32.0
- EPOCH# = 2500
- EVENTID = mysql-bin.000007:0000000625753710;0
- SOURCEID = host1
- METADATA = [mysql_server_id=1687011;dbms_type=mysql;service=firstrep;shard=test]
- TYPE = com.continuent.tungsten.replicator.event.ReplDBMSEvent
"""


def text(listed: Listed) -> str:
    return "\n".join(lines(listed)) + "\n"


def test_statements() -> None:
    first = {"schema": "test", "sql": "insert into t values (1)", "options": {"##charset": "UTF-8", "autocommit": "1"}}
    second = {"schema": "", "sql": "drop table t", "options": {}}
    assert text(a_fragment(first, second)) == HEADER + (
        "- OPTIONS = [##charset = UTF-8, autocommit = 1]\n"
        "- SCHEMA = test\n"
        "- SQL(0) = insert into t values (1)\n"
        "- SCHEMA = \n"
        "- SQL(1) = drop table t\n"
    )


def test_an_insert() -> None:
    assert text(a_fragment(rows("insert", (None, [2, "ü", None]), (None, [3, "", b"\x00\xff"])))) == HEADER + (
        "- SQL(0) =\n"
        " - ACTION = INSERT\n"
        " - SCHEMA = test\n"
        " - TABLE = user\n"
        " - ROW# = 0\n"
        "  - COL(1: id) = 2\n"
        "  - COL(2: name) = ü\n"
        "  - COL(3: photo) = NULL\n"
        "  - KEY(1: id) = 2\n"
        " - ROW# = 1\n"
        "  - COL(1: id) = 3\n"
        "  - COL(2: name) = \n"
        "  - COL(3: photo) = 0x00ff\n"
        "  - KEY(1: id) = 3\n"
    )


def test_an_update_and_a_delete_name_the_old_key() -> None:
    changes = rows("update", ([2, "a", None], [3, "b", None])), rows("delete", ([3, "b", None], None))
    assert text(a_fragment(*changes)) == HEADER + (
        "- SQL(0) =\n"
        " - ACTION = UPDATE\n"
        " - SCHEMA = test\n"
        " - TABLE = user\n"
        " - ROW# = 0\n"
        "  - COL(1: id) = 3\n"
        "  - COL(2: name) = b\n"
        "  - COL(3: photo) = NULL\n"
        "  - KEY(1: id) = 2\n"
        "- SQL(1) =\n"
        " - ACTION = DELETE\n"
        " - SCHEMA = test\n"
        " - TABLE = user\n"
        " - ROW# = 0\n"
        "  - KEY(1: id) = 3\n"
    )


def test_without_a_key_the_whole_old_row_is_named() -> None:
    told = text(a_fragment(rows("delete", ([3, "b", None], None), key=())))
    assert told.endswith("  - KEY(1: id) = 3\n  - KEY(2: name) = b\n  - KEY(3: photo) = NULL\n")
    assert "KEY" not in text(a_fragment(rows("insert", (None, [3, "b", None]), key=())))


def test_absent_columns_are_not_shown() -> None:
    change = rows("update", ([3], [3, b"x"])) | {"before_present": b"\x01", "after_present": b"\x05"}
    told = text(a_fragment(change))
    assert told.endswith("  - COL(1: id) = 3\n  - COL(3: photo) = 0x78\n  - KEY(1: id) = 3\n")


def test_a_fragment_that_is_not_the_last() -> None:
    listed = a_fragment(last_frag=False, fragno=7, event_id=None, commit_time=None)
    told = text(listed)
    assert told.startswith("SEQ# = 3582 / FRAG# = 7\n")
    assert "- TIME = null\n- EPOCH# = 2500\n- EVENTID = null\n" in told


@pytest.mark.parametrize(
    ("microseconds", "shown"),
    [
        (0, "1970-01-01 00:00:00.0"),
        (1742382452123456, "2025-03-19 11:07:32.123456"),
        (1742382452120000, "2025-03-19 11:07:32.12"),
        (1742382452000001, "2025-03-19 11:07:32.000001"),
    ],
)
def test_times(microseconds: int, shown: str) -> None:
    assert time_of(microseconds) == shown


def test_json() -> None:
    listed = a_fragment(rows("update", ([2, "a", b"\x01"], [2, "b", None])), {"schema": "s", "sql": "x", "options": {}})
    found = as_object(listed)
    json.dumps(found)
    assert found["changes"][0]["rows"] == [
        {"before": {"id": 2, "name": "a", "photo": {"hex": "01"}}, "after": {"id": 2, "name": "b", "photo": None}}
    ]
    assert found["changes"][1] == {"schema": "s", "sql": "x", "options": {}}
    assert "changes" not in as_object(listed, headers=True)


@pytest.mark.parametrize(
    ("choice", "bounds"),
    [
        (Choice(), (10, 20)),
        (Choice(low=12), (12, 20)),
        (Choice(high=12), (10, 12)),
        (Choice(low=15, high=15), (15, 15)),
        (Choice(first=3), (10, 12)),
        (Choice(last=3), (18, 20)),
        (Choice(voided=True), (10, 21)),
        (Choice(high=12, voided=True), (10, 12)),
    ],
)
def test_choices(choice: Choice, bounds: tuple[int, int]) -> None:
    assert choice.bounds(Seqno(10), Seqno(20)) == bounds


def test_the_layout_of_the_headers_alone() -> None:
    assert "\n".join(lines(a_fragment(rows("insert", (None, [1, "", None]))), headers=True)) + "\n" == HEADER
