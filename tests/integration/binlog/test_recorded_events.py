"""`thl binlog --events` of recorded files equals what mysqlbinlog and mariadb-binlog say of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connector.fetching.mysql_programs import tool
from tests.support.binlog_command import RECORDED, binlog
from tests.support.event_oracles import check_events
from tests.support.servers.mariadb_client import mariadb_binlog


@pytest.mark.parametrize(
    ("file", "command", "types"),
    [
        (
            RECORDED,
            lambda: tool("mysqlbinlog"),
            {"FORMAT_DESCRIPTION", "GTID", "GTID_TAGGED", "TRANSACTION_PAYLOAD", "UPDATE_ROWS", "ROTATE"},
        ),
        (
            RECORDED.with_name("mariadb-11.4.000001"),
            mariadb_binlog,
            {"MARIADB_GTID", "MARIADB_GTID_LIST", "MARIADB_BINLOG_CHECKPOINT", "MARIADB_QUERY_COMPRESSED", "XID"},
        ),
    ],
    ids=["mysql", "mariadb"],
)
def test_events_of_a_recorded_file_equal_those_of_its_tool(
    tmp_path: Path, file: Path, command: Callable[[], list[str]], types: set[str]
) -> None:
    told = binlog(file, "--events", "--format", "json")
    assert told.code == 0
    checked, refused = check_events(told.objects, command(), file, tmp_path)
    assert not refused
    assert {event["type"] for event in checked} >= types
