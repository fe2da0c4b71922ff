"""A source whose binary log lacks changes of its tables is refused, at the start and while reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connector.clock import SystemClock
from connector.config.model import Config
from connector.config.source import Source
from connector.errors import HistoriesDiffer, MissingPrivilege, PreflightError, Unsupported
from connector.log.epochs.control import EpochRecord
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.position import PositionRecord
from connector.log.writing.trapped import check_source
from connector.mysql.preflight.replication import check_replication
from connector.mysql.server.connection import session
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import end_position, gtid_executed, unlogged_gtids
from connector.producer.sources.mysql import MySqlSource
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.verify.source import SourceReader
from tests.support.grants import granted
from tests.support.loading import a_database, a_user, as_source, checked, run
from tests.support.producing import until
from tests.support.servers.environment import SqlServer

pytestmark = pytest.mark.servers

MARIADB_GRANTS = granted("mariadb-source.sql", "log", "tables", "loads", schema="*")
MYSQL_GRANTS = granted("mysql-source.sql", "log", "tables", "loads", schema="*")
PARENT = "CREATE TABLE parent (id INT PRIMARY KEY) ENGINE = InnoDB"
CHILD = "CREATE TABLE child (p INT, CONSTRAINT fk FOREIGN KEY (p) REFERENCES parent (id)"
NOT_KEYS = "CREATE TABLE others (a INT COMMENT 'REFERENCES parent (id) ON DELETE CASCADE', `REFERENCES` INT)"
SMALL = {**MYSQL_FAST, "innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "32M"}


@pytest.fixture(scope="module")
def odd_mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    """It leaves cascades to the storage engine, and to the log neither what it replicates nor one schema."""
    settings = {
        **SMALL,
        "innodb_native_foreign_keys": "ON",
        "log_replica_updates": "OFF",
        "binlog_error_action": "IGNORE_ERROR",
    }
    with MySqlServer(tmp_path_factory.mktemp("mysql"), settings=settings, die_with_parent=True) as server:
        yield server


@pytest.fixture
def odd_mariadb(tmp_path: Path, mariadb_server: SqlServer) -> Iterator[SqlServer]:
    """A replica to be, without log_slave_updates, which is its default. Its own writes have a domain of their own."""
    settings = {"server_id": "4", "gtid_domain_id": "4", "relay_log": "relay", "log_bin": "odd-bin"}
    settings |= {"innodb_buffer_pool_size": "32M"}
    with MariaDbServer(tmp_path / "odd", settings=settings, die_with_parent=True) as server:
        server.run_sql(
            f"SET GLOBAL gtid_slave_pos = '{gtids(mariadb_server)}'; CHANGE MASTER TO "
            f"MASTER_HOST = '{mariadb_server.host}', MASTER_PORT = {mariadb_server.port}, "
            f"MASTER_USER = '{mariadb_server.user}', MASTER_PASSWORD = '{mariadb_server.password}', "
            "MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID = slave_pos"
        )
        yield server


def gtids(server: SqlServer) -> str:
    return server.run_sql("SELECT @@gtid_binlog_pos").splitlines()[1]


def refusal(source: Source, *, snapshot: bool = False) -> str:
    """What preflight says; "" when it is content."""
    try:
        checked(source, snapshot=snapshot)
    except PreflightError as error:
        return str(error)
    return ""


def cascades_are_refused_unless_accepted(server: SqlServer, grants: tuple[str, ...]) -> None:
    with a_database(server, "cascade") as (admin, name), a_user(server, *grants, do=(name,)) as source:
        run(admin, name, PARENT, f"{CHILD})", NOT_KEYS)
        assert refusal(source, snapshot=True) == ""
        run(admin, name, "DROP TABLE child", f"{CHILD} ON DELETE CASCADE ON UPDATE SET NULL)")
        for snapshot in (True, False):
            told = refusal(source, snapshot=snapshot)
            assert "foreign_keys=1" in told
            assert f"`{name}`.`child`.`fk` (ON DELETE CASCADE, ON UPDATE SET NULL)" in told
            assert f"ALTER TABLE `{name}`.`child` DROP FOREIGN KEY `fk`;" in told
        assert refusal(source.model_copy(update={"accept_unlogged_cascades": True})) == ""
        others = source.filters.model_copy(update={"ignore": (f"{name}.parent",)})
        assert "foreign key" in refusal(source.model_copy(update={"filters": others}))  # the child is captured still
        others = source.filters.model_copy(update={"ignore": (f"{name}.child",)})
        assert refusal(source.model_copy(update={"filters": others})) == ""


def test_mariadb_cascades_are_refused_with_the_documented_grants(mariadb_server: SqlServer) -> None:
    cascades_are_refused_unless_accepted(mariadb_server, MARIADB_GRANTS)


def test_mysql_cascades_are_refused_with_the_documented_grants(odd_mysql: SqlServer) -> None:
    cascades_are_refused_unless_accepted(odd_mysql, MYSQL_GRANTS)


@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_cascading_key_created_while_reading_is_refused(kind: str, request: pytest.FixtureRequest) -> None:
    server: SqlServer = request.getfixturevalue({"mariadb": "mariadb_server", "mysql": "odd_mysql"}[kind])
    grants = {"mariadb": MARIADB_GRANTS, "mysql": MYSQL_GRANTS}[kind]
    with a_database(server, "later") as (admin, name), a_user(server, *grants, do=(name,)) as user:
        run(admin, name, PARENT, "CREATE TABLE child (p INT)")
        source = user.model_copy(update={"start": "now", "server_id": 4711})
        stopped = read_on(source, lambda: run(admin, name, *(
            "CREATE TABLE fine (p INT, FOREIGN KEY (p) REFERENCES parent (id))",
            f"CREATE TABLE {name}.inline (p INT REFERENCES {name}.parent (id) ON DELETE CASCADE)",
        )))  # fmt: skip
        assert f"{name}.inline (ON DELETE CASCADE)" in stopped
        made = server.run_sql(f"SHOW CREATE TABLE {name}.inline")
        assert "ON DELETE CASCADE" in made  # it is a key, although it stands in the column's definition
        run(admin, name, "DROP TABLE inline")
        alter = "ALTER TABLE child ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES parent (id) ON UPDATE SET NULL"
        assert f"{name}.child.k (ON UPDATE SET NULL)" in read_on(source, lambda: run(admin, name, alter))


def read_on(source: Source, then: object) -> str:
    """The keys that stop a producer's stream, begun now."""
    assert callable(then)
    ours = MySqlSource(Config(source=source), SystemClock())
    ours.check(load=False)
    facts = ours.facts(new=True)
    position = PositionRecord(
        finished=None, resume=facts.start, gtid_set=facts.gtid_set, open=None, tails={0: Seqno(-1)}
    )
    then()
    with closing(ours.after(position, None)) as stream, pytest.raises(Unsupported) as stopped:
        until(lambda: stream.read(0.2) is None)
    assert "source.accept_unlogged_cascades=true" in stopped.value.hint
    return str(stopped.value.where["foreign_keys"])


def test_tables_with_possibly_hidden_keys_are_refused(mariadb_server: SqlServer) -> None:
    with a_database(mariadb_server, "hidden") as (admin, name):
        run(admin, name, "CREATE TABLE seen (id INT)", "CREATE TABLE unseen (id INT)")
        grants = (*granted("mariadb-source.sql", "log"), f"SELECT ON {name}.seen")
        with a_user(mariadb_server, *grants, do=(name,)) as source:
            assert f"GRANT SELECT ON `{name}`.* TO" in refusal(source)
            assert refusal(source.model_copy(update={"accept_unlogged_cascades": True})) == ""
            with closing(SourceReader(source)) as reader, pytest.raises(MissingPrivilege) as unread:
                reader.tables(reader.filter())
            assert unread.value.hint.startswith(f"GRANT SELECT ON `{name}`.* TO")
        with a_user(mariadb_server, *grants, do=(f"{name}.seen",)) as source:
            assert refusal(source) == ""
            with closing(SourceReader(source)) as reader:
                assert [table.name for table in reader.tables(reader.filter())] == [(name, "seen")]


def test_a_mysql_replica_that_does_not_log_what_it_replicates_is_refused(odd_mysql: SqlServer) -> None:
    """It is fine while it is no replica."""
    with a_user(odd_mysql, *MYSQL_GRANTS) as source:
        facts = checked(source)
        assert any(warning.startswith("binlog_error_action is IGNORE_ERROR") for warning in facts.warnings)
        odd_mysql.run_sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.9', SOURCE_PORT = 1")
        try:
            told = refusal(source)
            assert "setting=log_replica_updates found=OFF replicates_from=127.0.0.9" in told
            assert "log_replica_updates = ON" in told
            with session(source) as connection, pytest.raises(PreflightError) as unlogged:
                check_replication(connection, facts)
            assert unlogged.value.where == {
                "setting": "log_replica_updates",
                "found": "OFF",
                "replicates_from": "127.0.0.9",
            }
        finally:
            odd_mysql.run_sql("RESET REPLICA ALL")
        assert refusal(source) == ""


def test_filtering_replica_is_a_warning(mysql_server: SqlServer) -> None:
    mysql_server.run_sql(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.9', SOURCE_PORT = 1; "
        "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (shop)"
    )
    try:
        (told,) = [one for one in checked(as_source(mysql_server)).warnings if "replicate_" in one]
    finally:
        mysql_server.run_sql("CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (); RESET REPLICA ALL")
    assert "(replicate_ignore_db)" in told
    assert not [one for one in checked(as_source(mysql_server)).warnings if "replicate_" in one]


@pytest.mark.long
def test_a_mariadb_replica_that_does_not_log_what_it_replicates_is_refused(
    mariadb_server: SqlServer, odd_mariadb: SqlServer
) -> None:
    with a_user(odd_mariadb, *MARIADB_GRANTS) as source:
        with session(source) as connection:
            facts = read_facts(connection)
            assert not facts.logs_replicated
            check_replication(connection, facts)  # nothing comes
            before, executed = unlogged_gtids(connection), gtid_executed(connection)
        assert refusal(source) == ""
        assert "setting=log_slave_updates found=OFF replicates_from=127.0.0.1" in refusal(as_source(odd_mariadb))
        odd_mariadb.run_sql("START SLAVE")
        mariadb_server.run_sql("CREATE DATABASE IF NOT EXISTS taken; DROP DATABASE taken")
        assert odd_mariadb.run_sql(f"SELECT MASTER_GTID_WAIT('{gtids(mariadb_server)}', 60)").splitlines()[1] == "0"
        with session(source) as connection, pytest.raises(PreflightError) as unlogged_now:
            check_replication(connection, facts)
        assert unlogged_now.value.where["setting"] == "log_slave_updates"
        assert "log_slave_updates = ON" in refusal(source)
        # What it took in meanwhile is not in its log, also when it is no replica any more.
        odd_mariadb.run_sql("STOP SLAVE; RESET SLAVE ALL")
        assert refusal(source) == ""
        with session(source) as connection:
            unlogged, now, end = unlogged_gtids(connection), gtid_executed(connection), end_position(connection)
        assert unlogged == gtids(mariadb_server) != before
        begun = PositionRecord(finished=None, resume=end, gtid_set=executed, open=None, tails={0: Seqno(-1)})
        last = EpochRecord(
            epoch=Epoch(1), first_seqno=Seqno(0), source_id="", server_uuid="mariadb-4", started=0, reason="online",
            gtid_set=executed,
        )  # fmt: skip
        with pytest.raises(HistoriesDiffer) as never_logged:
            check_source(begun, last, server_uuid="mariadb-4", executed=now, unlogged=unlogged)
        assert "unlogged" in never_logged.value.where
        check_source(replace(begun, gtid_set=now), last, server_uuid="mariadb-4", executed=now, unlogged=unlogged)


def test_a_server_that_leaves_schemas_out_of_its_own_log_is_refused(odd_mysql: MySqlServer, tmp_path: Path) -> None:
    odd_mysql.stop()
    odd_mysql.settings["binlog_ignore_db"] = "scratch"
    odd_mysql.start()
    with a_user(odd_mysql, *MYSQL_GRANTS) as source:
        told = refusal(source)
        assert "setting=binlog_ignore_db found=scratch" in told
        assert "remove binlog_ignore_db from the server's configuration" in told
    settings = {"server_id": "5", "binlog_do_db": "shop", "innodb_buffer_pool_size": "32M"}
    with MariaDbServer(tmp_path / "filtered", settings=settings, die_with_parent=True) as server:
        assert "setting=binlog_do_db found=shop" in refusal(as_source(server))
