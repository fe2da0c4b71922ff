"""The facts of supported and unsupported servers, from written answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from connector.errors import PreflightError
from connector.mysql.server.connection import Connection
from connector.mysql.server.source_facts import SourceFacts, read_facts

SAID = {
    "binlog_checksum": "CRC32", "binlog_format": "ROW", "binlog_row_image": "FULL", "expire_logs_days": "3",
    "explicit_defaults_for_timestamp": "OFF", "gtid_mode": "ON", "innodb_flush_log_at_trx_commit": "1",
    "log_bin": "ON", "lower_case_table_names": "0", "server_id": "1", "sync_binlog": "1",
    "server_uuid": "3e11fa47-71ca-11e1-9e33-c80aa9429562",
}  # fmt: skip


class Answers:
    """A session in which every statement has the same answer."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def cursor(self) -> Answers:
        return self

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, sql: str, args: object) -> None:
        assert sql.startswith("SHOW GLOBAL VARIABLES"), args

    def fetchall(self) -> list[dict[str, Any]]:
        return [{"Variable_name": name, "Value": value} for name, value in self._values.items()]


def facts(version: str, **values: str) -> SourceFacts:
    return read_facts(cast(Connection, Answers({**SAID, **values, "version": version})))


@pytest.mark.parametrize("version", ["5.5.62-log", "5.1.73", "5.0.96-community"])
def test_unsupported_server_version_is_refused(version: str) -> None:
    with pytest.raises(PreflightError) as told:
        read_facts(cast(Connection, Answers({"version": version})))
    assert "thl binlog" in told.value.hint


@pytest.mark.parametrize("version", ["5.6.24-log", "5.7.44-log"])
def test_older_servers_report_no_names_and_no_seconds(version: str) -> None:
    found = facts(version)
    assert (found.logs_column_names, found.binlog_row_metadata, found.set_variable) == (False, "NONE", "SET GLOBAL")
    assert (found.flush_privilege, found.expire_seconds) == ("RELOAD", 3 * 86400)
    assert found.unlogged_options == {"explicit_defaults_for_timestamp": "0"}
    assert facts(version, explicit_defaults_for_timestamp="ON").unlogged_options == {
        "explicit_defaults_for_timestamp": "1"
    }


def test_newer_servers_report_names_and_seconds() -> None:
    more = {"binlog_row_metadata": "MINIMAL", "binlog_expire_logs_seconds": "60", "expire_logs_days": "0"}
    old, new = facts("8.0.11", **more), facts("8.0.43", **more)
    assert (new.logs_column_names, new.binlog_row_metadata, new.set_variable) == (True, "MINIMAL", "SET PERSIST")
    assert (old.flush_privilege, new.flush_privilege, new.expire_seconds) == ("RELOAD", "FLUSH_TABLES", 60)
    assert new.unlogged_options == {}
    assert facts("8.0.43", **more | {"binlog_expire_logs_seconds": "0"}).expire_seconds == 0
    assert facts("8.0.43", **more, system_time_zone="CET").system_time_zone == "CET"


def test_unlogged_changes_of_a_server_are_recognised() -> None:
    new = {"binlog_row_metadata": "FULL"}
    assert facts("8.0.43", **new, log_replica_updates="ON").logs_replicated
    assert facts("8.0.11", **new, log_slave_updates="ON").logs_replicated
    off = facts("8.0.43", **new, log_replica_updates="OFF", log_slave_updates="OFF")
    assert (off.logs_replicated, off.logs_replicated_by) == (False, "log_replica_updates")
    of_mariadb = facts("11.4.5-MariaDB-log", **new, log_slave_updates="OFF", gtid_strict_mode="ON", wsrep_on="ON")
    assert (of_mariadb.logs_replicated, of_mariadb.logs_replicated_by) == (False, "log_slave_updates")
    assert of_mariadb.galera
    ordinary = facts("8.0.43", **new)
    assert (ordinary.galera, ordinary.logs_sessions, ordinary.stops_without_log) == (False, True, True)
    assert not facts("5.6.24", sql_log_bin="OFF").logs_sessions
    assert not facts("5.6.24", binlog_error_action="IGNORE_ERROR").stops_without_log
