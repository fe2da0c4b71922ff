"""Every setting, grant and position that the producer needs is checked and reported with its fix."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pymysql.constants import ER

from connector.config.source import Source
from connector.errors import ConfigError, HistoriesDiffer, MissingPrivilege, PreflightError, Purged, SourceUnavailable
from connector.mysql.preflight.preflight import preflight
from connector.mysql.server.connection import Connection, connect, query
from connector.mysql.server.dump import open_stream
from connector.mysql.server.source_state import (
    check_available,
    end_position,
    gtid_executed,
    oldest_position,
    resolve_start,
)
from connector.mysql.snapshot.snapshot import read_snapshot
from connector.mysql.transforms.filters import Filter
from connector.sandbox.mysql import MySqlServer
from tests.support.clock import Slept
from tests.support.grants import granted
from tests.support.loading import a_database, a_user, as_source, checked, run, take
from tests.support.producing import until
from tests.support.servers.environment import SqlServer

LEAST = granted("mysql-source.sql", "log")
NEEDED = [  # one by one; without XA_RECOVER_ADMIN there is a warning
    privilege
    for grant in granted("mysql-source.sql", "log", "tables", "loads", schema="*")
    for privilege in grant.removesuffix(" ON *.*").split(", ")
    if privilege != "XA_RECOVER_ADMIN"
]


@contextmanager
def a_setting(server: SqlServer, name: str, value: str) -> Iterator[None]:
    connection = connect(as_source(server))
    before = query(connection, f"SELECT @@GLOBAL.{name} AS v")[0]["v"]
    query(connection, f"SET GLOBAL {name} = %s", (int(value) if value.isdigit() else value,))
    try:
        yield
    finally:
        query(connection, f"SET GLOBAL {name} = %s", (before,))
        connection.close()


def test_correct_server_passes_with_its_facts(mysql_server: SqlServer) -> None:
    facts = checked(as_source(mysql_server), snapshot=True)
    assert facts.release >= (8, 0)
    assert facts.gtids
    assert uuid.UUID(facts.server_uuid)
    assert facts.binlog_row_metadata == "FULL"


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("binlog_format", "MIXED", "SET PERSIST binlog_format = 'ROW';"),
    ],
)
def test_wrong_setting_is_refused_with_its_fix(mysql_server: SqlServer, name: str, value: str, hint: str) -> None:
    source = as_source(mysql_server)
    with a_setting(mysql_server, name, value):
        with pytest.raises(PreflightError) as raised:
            checked(source)
        assert raised.value.where == {"setting": name, "found": value, "needed": "ROW"}
        assert raised.value.hint.startswith(hint)
        connection = connect(source)
        query(connection, raised.value.hint.partition(";")[0].replace("PERSIST", "GLOBAL"))
        connection.close()
        checked(source)


def test_binlog_format_is_a_warning_if_statements_are_kept(mysql_server: SqlServer) -> None:
    source = as_source(mysql_server).model_copy(update={"statements": "keep"})
    with a_setting(mysql_server, "binlog_format", "MIXED"):
        facts = checked(source)
    assert any("binlog_format is MIXED" in warning for warning in facts.warnings)
    assert not any("binlog_format" in warning for warning in checked(source).warnings)


def test_all_missing_prerequisites_are_reported_at_once(mysql_server: SqlServer) -> None:
    with (
        a_setting(mysql_server, "binlog_format", "MIXED"),
        a_setting(mysql_server, "binlog_row_image", "MINIMAL"),
        a_setting(mysql_server, "binlog_row_value_options", "PARTIAL_JSON"),
        pytest.raises(PreflightError) as raised,
    ):
        checked(as_source(mysql_server))
    assert {problem.where["setting"] for problem in raised.value.problems} == {
        "binlog_format",
        "binlog_row_value_options",
    }
    assert "SET PERSIST binlog_format = 'ROW';" in str(raised.value)
    assert "SET PERSIST binlog_row_value_options = '';" in str(raised.value)


def test_minimal_row_metadata_is_a_warning(mysql_server: SqlServer) -> None:
    with a_setting(mysql_server, "binlog_row_metadata", "MINIMAL"):
        warnings = checked(as_source(mysql_server)).warnings
    (warning,) = (one for one in warnings if one.startswith("binlog_row_metadata is MINIMAL"))
    assert "SET PERSIST binlog_row_metadata = 'FULL';" in warning
    assert not any("binlog_row_metadata" in one for one in checked(as_source(mysql_server)).warnings)
    with (
        a_setting(mysql_server, "binlog_row_metadata", "MINIMAL"),
        pytest.raises(PreflightError) as raised,
    ):
        checked(as_source(mysql_server, statements="keep"))
    assert raised.value.where == {"setting": "binlog_row_metadata", "found": "MINIMAL", "needed": "FULL"}
    assert "SET PERSIST binlog_row_metadata = 'FULL';" in raised.value.hint


def test_weak_durability_is_a_warning(mysql_server: SqlServer) -> None:
    with (
        a_setting(mysql_server, "sync_binlog", "0"),
        a_setting(mysql_server, "innodb_flush_log_at_trx_commit", "2"),
    ):
        warnings = checked(as_source(mysql_server)).warnings
    assert any(warning.startswith("sync_binlog is 0") for warning in warnings)
    assert any(warning.startswith("innodb_flush_log_at_trx_commit is 2") for warning in warnings)


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_row_images_without_all_columns_are_a_warning(mysql_server: SqlServer, image: str) -> None:
    with a_setting(mysql_server, "binlog_row_image", image):
        (warning,) = [one for one in checked(as_source(mysql_server)).warnings if "row_image" in one]
    assert warning.startswith(f"binlog_row_image is {image}")
    assert "SET PERSIST binlog_row_image = 'FULL'; or set source.records.dir" in warning


def test_partial_json_is_a_warning_and_with_minimal_images_refused(mysql_server: SqlServer) -> None:
    with a_setting(mysql_server, "binlog_row_value_options", "PARTIAL_JSON"):
        warnings = checked(as_source(mysql_server)).warnings
        assert any(warning.startswith("binlog_row_value_options is PARTIAL_JSON") for warning in warnings)
        with (
            a_setting(mysql_server, "binlog_row_image", "MINIMAL"),
            pytest.raises(PreflightError) as raised,
        ):
            checked(as_source(mysql_server))
    assert raised.value.where == {"setting": "binlog_row_value_options", "found": "PARTIAL_JSON", "needed": "''"}
    assert raised.value.hint.startswith("SET PERSIST binlog_row_value_options = '';")


def test_partial_json_with_minimal_images_is_completed_by_a_record_store(
    mysql_server: SqlServer, tmp_path: Path
) -> None:
    source = as_source(mysql_server)
    source = source.model_copy(update={"records": source.records.model_copy(update={"dir": tmp_path / "records"})})
    with (
        a_setting(mysql_server, "binlog_row_value_options", "PARTIAL_JSON"),
        a_setting(mysql_server, "binlog_row_image", "MINIMAL"),
    ):
        assert not [one for one in checked(source).warnings if "PARTIAL_JSON" in one or "row_image" in one]


def test_least_grants_suffice_to_read_the_log(mysql_server: SqlServer) -> None:
    with a_user(mysql_server, *LEAST) as source:
        checked(source)
        connection = connect(source)
        start = resolve_start(connection, "now").position
        connection.close()
        assert start is not None
        open_stream(source, start).close()


def test_least_grants_suffice_to_load(mysql_server: SqlServer) -> None:
    with a_database(mysql_server, "grants") as (admin, name):
        run(admin, name, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        grants = granted("mysql-source.sql", "log", "tables", "loads", schema=name)
        with a_user(mysql_server, *grants, do=(name,)) as source:
            checked(source, snapshot=True)
            assert len(take(source)) == 3  # the schema, the table, its row


@pytest.mark.parametrize("missing", NEEDED)
def test_each_missing_grant_is_refused_with_its_statement(mysql_server: SqlServer, missing: str) -> None:
    with a_user(mysql_server, *(f"{privilege} ON *.*" for privilege in NEEDED if privilege != missing)) as source:
        with pytest.raises(PreflightError) as raised:
            checked(source, snapshot=True)
        assert raised.value.hint == f"GRANT {missing} ON *.* TO '{source.user}'@'%';"
        mysql_server.run_sql(raised.value.hint)
        checked(source, snapshot=True)


def test_unreadable_table_is_refused(mysql_server: SqlServer) -> None:
    """information_schema hides it, so only the grants can tell."""
    with a_database(mysql_server, "hidden") as (admin, name):
        run(admin, name, "CREATE TABLE seen (id INT)", "CREATE TABLE hidden (id INT)")
        grants = (*granted("mysql-source.sql", "log", "loads"), f"SELECT ON {name}.seen")
        with (
            a_user(mysql_server, *grants, do=(name,)) as source,
            pytest.raises(MissingPrivilege) as raised,
        ):
            checked(source, snapshot=True)
        assert raised.value.hint.startswith(f"GRANT SELECT ON `{name}`.* TO ")
        with a_user(mysql_server, *grants, do=(f"{name}.seen",)) as source:
            checked(source, snapshot=True)


def test_grants_of_roles_count(mysql_server: SqlServer) -> None:
    role = f"r{uuid.uuid4().hex[:8]}"
    mysql_server.run_sql(f"CREATE ROLE {role}; GRANT {LEAST[0]} TO {role}")
    try:
        with a_user(mysql_server) as source:
            mysql_server.run_sql(f"GRANT {role} TO {source.user}; SET DEFAULT ROLE {role} TO {source.user}")
            checked(source)
    finally:
        mysql_server.run_sql(f"DROP ROLE {role}")


def test_wrong_password_is_refused_and_missing_server_is_unavailable(mysql_server: SqlServer) -> None:
    with pytest.raises(PreflightError) as refused:
        connect(as_source(mysql_server, user="nobody", password="x"))
    assert (refused.value.where["code"], refused.value.where["user"]) == (ER.ACCESS_DENIED_ERROR, "nobody")
    assert "source.password" in refused.value.hint
    with pytest.raises(SourceUnavailable) as gone:
        connect(Source(host="127.0.0.1", port=1))
    assert gone.value.where["source"] == "127.0.0.1:1"


def test_the_sources_own_server_id_is_refused(mysql_server: SqlServer) -> None:
    own = checked(as_source(mysql_server)).server_id
    with pytest.raises(PreflightError) as refused:
        checked(as_source(mysql_server, server_id=own))
    assert refused.value.where == {"option": "source.server_id", "server_id": own}


def test_a_server_id_that_a_replica_has_is_refused(mysql_server: SqlServer) -> None:
    source = as_source(mysql_server, server_id=77123)
    connection = connect(source)
    stream = open_stream(source, end_position(connection))
    try:
        with pytest.raises(PreflightError) as raised:
            preflight(connection, source, snapshot=False)
        registered = next(row for row in query(connection, "SHOW REPLICAS") if row["Server_Id"] == 77123)
        assert raised.value.where["server_id"] == 77123
        assert raised.value.where["replica"] == registered["Replica_UUID"]
        # An earlier session of this replica, which the server has not yet ended, is no other replica.
        preflight(connection, source, snapshot=False, replica_uuid=registered["Replica_UUID"])
    finally:
        stream.close()
        connection.close()


@pytest.mark.parametrize("server", ["mysql_server", "mariadb_server"])
def test_closed_stream_ends_its_dump_thread_on_the_server(server: str, request: pytest.FixtureRequest) -> None:
    # With an hour between heartbeats the server would not notice the closed connection by itself.
    with a_user(request.getfixturevalue(server), *LEAST) as whole:
        source = whole.model_copy(update={"server_id": 77124, "dump_heartbeat": 3600.0})
        with at_source(request.getfixturevalue(server)) as connection:

            def threads() -> list[str]:
                rows = query(connection, "SHOW PROCESSLIST")
                return [row["Command"] for row in rows if row["User"] == source.user]

            stream = open_stream(source, end_position(connection))
            until(lambda: threads() == ["Binlog Dump"])
            stream.close()
            stream.close()
            until(lambda: not threads())


@contextmanager
def at_source(server: SqlServer) -> Iterator[Connection]:
    connection = connect(as_source(server))
    try:
        yield connection
    finally:
        connection.close()


def test_start_settings_are_resolved(mysql_server: SqlServer) -> None:
    with at_source(mysql_server) as connection:
        now = resolve_start(connection, "now")
        assert (now.position, now.gtid_set) == (end_position(connection), gtid_executed(connection))
        earliest = resolve_start(connection, "earliest")
        assert earliest.position == oldest_position(connection)
        assert resolve_start(connection, str(now.position)).position == now.position
        assert now.gtid_set is not None
        assert resolve_start(connection, now.gtid_set or "").gtid_set == now.gtid_set
        with pytest.raises(ConfigError) as unknown:
            resolve_start(connection, "yesterday")
        assert unknown.value.where == {"option": "source.start", "value": "yesterday"}


def test_unknown_position_is_refused(mysql_server: SqlServer) -> None:
    with at_source(mysql_server) as connection:
        end = end_position(connection)
        with pytest.raises(HistoriesDiffer) as beyond:
            check_available(connection, resolve_start(connection, f"{end.file}:{end.offset + 1_000_000}").stream)
        assert beyond.value.where["end"] == end
        with pytest.raises(HistoriesDiffer) as unknown:
            check_available(connection, resolve_start(connection, f"{uuid.UUID(int=1)}:7").stream)
        assert unknown.value.where == {"lacking": f"{uuid.UUID(int=1)}:7"}


def test_purged_position_is_refused_with_the_oldest_one(mysql_server: SqlServer) -> None:
    with at_source(mysql_server) as connection, a_database(mysql_server, "purge") as (source, name):
        first = end_position(connection)
        run(source, name, "CREATE TABLE t (id INT)", "FLUSH BINARY LOGS")
        query(connection, f"PURGE BINARY LOGS TO '{end_position(connection).file}'")
        oldest = oldest_position(connection)
        with pytest.raises(Purged) as by_position:
            check_available(connection, resolve_start(connection, str(first)).stream)
        assert by_position.value.where == {"position": first, "oldest": oldest}
        own = query(connection, "SELECT @@server_uuid AS u")[0]["u"]
        with pytest.raises(Purged) as by_gtids:
            check_available(connection, resolve_start(connection, f"{own}:1").stream)
        assert str(by_gtids.value.where["purged"]).startswith(f"{own}:2")
        assert by_gtids.value.where["oldest"] == oldest


def test_cascades_that_are_not_logged_are_refused_unless_accepted(tmp_path: Path) -> None:
    """MySQL 9.6 logs them, unless it is configured to leave them to the storage engine like earlier versions."""
    own_server = MySqlServer(tmp_path / "mysql", settings={"innodb_native_foreign_keys": "ON"})
    with own_server as server, a_database(server, "cascade") as (source, name):
        run(source, name, "CREATE TABLE parent (id INT PRIMARY KEY)")
        child = "CREATE TABLE child (p INT, CONSTRAINT fk FOREIGN KEY (p) REFERENCES parent (id)"
        run(source, name, f"{child})")
        checked(source)
        run(source, name, "DROP TABLE child", f"{child} ON DELETE CASCADE ON UPDATE SET NULL)")
        with pytest.raises(PreflightError) as raised:
            checked(source)
        assert raised.value.where == {"foreign_keys": 1}
        assert "source.accept_unlogged_cascades" in raised.value.hint
        assert "(ON DELETE CASCADE, ON UPDATE SET NULL)" in raised.value.message
        assert raised.value.hint.startswith(f"ALTER TABLE `{name}`.`child` DROP FOREIGN KEY `fk`;")
        checked(source.model_copy(update={"accept_unlogged_cascades": True}))
        others = source.filters.model_copy(update={"ignore": (f"{name}.child",)})
        checked(source.model_copy(update={"filters": others}))


def test_server_without_a_binary_log_is_refused(tmp_path: Path) -> None:
    own_server = MySqlServer(tmp_path / "mysql", settings={"skip_log_bin": ""})
    with own_server as server, pytest.raises(PreflightError) as refused:
        checked(as_source(server))
    assert refused.value.where == {"setting": "log_bin", "found": "OFF"}


def test_load_without_the_privilege_is_refused(mysql_server: SqlServer) -> None:
    with a_user(mysql_server, *LEAST) as source, pytest.raises(MissingPrivilege):
        read_snapshot(source, Filter(source.filters), Slept())
