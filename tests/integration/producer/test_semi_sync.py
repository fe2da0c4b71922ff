"""Semi-synchronous sources: a commit waits until Kafka has the transaction, so the loss of a source loses none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from connector.config.source import Source
from connector.errors import PreflightError, SandboxError
from connector.fetching.mysql_programs import mysql_programs
from connector.mysql.preflight.preflight import preflight
from connector.mysql.server.connection import session
from connector.sandbox.mysqld import Mysqld
from tests.support.clock import PATIENCE
from tests.support.grants import granted
from tests.support.loading import a_user
from tests.support.long import long
from tests.support.problems import texts
from tests.support.producing import Bench, check, finished, fragments, last_seqno, table_of, until
from tests.support.semi_sync import SERVERS, enable, execute, make_server, plugin, state, waiting, writing
from tests.support.servers.environment import Broker
from tests.support.servers.mysql56 import MySql56Server, mysql56_folder


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mysqld]:
    with make_server(request.param, tmp_path_factory.mktemp(request.param)) as made:
        enable(made)
        yield made


MYSQL_FIRST = pytest.mark.parametrize("server", ["mysql", *long("mariadb")], indirect=True)
"""Of the producer's own behaviour, which takes seconds to show: MariaDB's protocol is shown by the other tests."""


@pytest.fixture
def bench(server: Mysqld, kafka_broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    """A service with a table; the source waits for its producer, and not before the test."""
    made = Bench(server, kafka_broker, tmp_path)
    made.settings |= {"THL_SOURCE__SEMI_SYNC": "true", "THL_SOURCE__START": "now"}
    made.settings |= {"THL_PUBLISH__IDLE_POSITION_SECONDS": "3600"}
    server.run_sql(f"SET GLOBAL {plugin(server)}_enabled = OFF")
    made.make_table()
    server.run_sql(f"SET GLOBAL {plugin(server)}_enabled = ON")
    yield made
    server.run_sql(f"SET GLOBAL {plugin(server)}_enabled = OFF")  # ends what still waits


def insert(bench: Bench, value: str = "new") -> str:
    return f"INSERT INTO {bench.service}.t (v) VALUES ('{value}')"


def in_background(server: Mysqld, *statements: str) -> Thread:
    thread = Thread(target=execute, args=(server, *statements), daemon=True)
    thread.start()
    return thread


def test_commit_waits_until_kafka_has_it(bench: Bench, server: Mysqld) -> None:
    with bench.start() as running:
        running.online()
        execute(server, insert(bench))
        assert last_seqno(bench) == 0
        running.process.send_signal(signal.SIGSTOP)
        client = in_background(server, insert(bench))
        until(lambda: waiting(server) == 1)
        assert client.is_alive()
        assert len(bench.rows()) == 3  # not visible before it is in Kafka
        running.process.send_signal(signal.SIGCONT)
        client.join()
        assert last_seqno(bench) == 1
        assert running.stop() == 0
    assert len(bench.rows()) == 4


def test_everything_that_is_logged_is_acknowledged_at_once(bench: Bench, server: Mysqld) -> None:
    """The timer that moves an idle position is an hour, as is the source's timeout."""
    name, other = bench.service, f"{bench.service}_not"
    before = state(server)
    xa = ("XA START 'x'", insert(bench, "xa"), "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    with bench.start(THL_PUBLISH__FRAGMENT_BYTES="8192", THL_PUBLISH__COMMIT_BYTES="65536") as running:
        running.online()
        until(lambda: state(server).replicas == 1)
        execute(server, f"CREATE DATABASE {other}", f"CREATE TABLE {other}.t (i INT)")
        execute(server, *[f"INSERT INTO {other}.t VALUES ({number})" for number in range(20)])  # filtered out
        execute(server, f"CREATE TABLE {name}.u (i INT)", f"ALTER TABLE {name}.u ADD j INT", f"DROP TABLE {name}.u")
        execute(server, *xa)
        execute(server, "XA START 'y'", insert(bench, "xa"), "XA END 'y'", "XA PREPARE 'y'", "XA ROLLBACK 'y'")
        execute(server, "FLUSH BINARY LOGS", insert(bench, "in the next file"), f"ANALYZE TABLE {name}.t")
        many = ",".join(f"('{'x' * 200}')" for _ in range(5000))
        execute(server, f"INSERT INTO {name}.t (v) VALUES {many}", insert(bench))
        assert running.stop() == 0
    after = state(server)
    assert after.not_waited == before.not_waited
    assert after.waited > before.waited
    rows = table_of(finished(fragments(bench.config)))
    assert rows == [row for row in bench.rows() if row[1] not in ("first", "second")]


@MYSQL_FIRST
@pytest.mark.parametrize(
    "point", ["produce.after_commit", *long("produce.before_commit", "produce.after_epoch_commit")]
)
def test_producer_killed_before_it_acknowledges_publishes_once_and_ends_the_wait(
    bench: Bench, server: Mysqld, point: str
) -> None:
    """The transaction is in Kafka, or not; the source has not committed it, and so would not count it as executed."""
    with bench.start() as running:
        running.online()
        execute(server, insert(bench))
        running.stop()
    with bench.start(THL_CRASH_POINT=point) as running:
        if point != "produce.after_epoch_commit":
            running.online()
        client = in_background(server, insert(bench, "waits"))
        assert running.ended() == -signal.SIGKILL
        until(lambda: waiting(server) == 1)
        assert client.is_alive()
    with bench.start() as running:
        running.online()
        client.join()
        execute(server, insert(bench))
        assert running.stop() == 0
    events = finished(fragments(bench.config))
    assert [event[0]["seqno"] for event in events] == [0, 1, 2]
    assert table_of(events) == bench.rows()[2:]


def test_producer_starts_while_a_ddl_statement_waits_for_it(bench: Bench, server: Mysqld) -> None:
    """The producer's checks read information_schema, which MariaDB locks for the statement: somebody has to choose."""
    with bench.start() as running:
        running.online()
        running.process.kill()
        running.process.wait()
    client = in_background(server, f"CREATE TABLE {bench.service}.child (i INT, FOREIGN KEY (i) REFERENCES t (id))")
    until(lambda: waiting(server) == 1)
    with bench.start() as running:
        if server.name == "mariadb":
            until(lambda: "may wait for this producer's acknowledgement" in running.text)
            assert client.is_alive()
            server.run_sql(f"SET GLOBAL {plugin(server)}_enabled = OFF; SET GLOBAL {plugin(server)}_enabled = ON")
        running.online()
        client.join()
        execute(server, f"INSERT INTO {bench.service}.child VALUES (1)")
        assert last_seqno(bench) == 1
        assert running.stop() == 0


@MYSQL_FIRST
def test_connection_lost_before_the_acknowledgement_does_not_prolong_the_wait(bench: Bench, server: Mysqld) -> None:
    with bench.start() as running:
        running.online()
        execute(server, insert(bench))
        running.process.send_signal(signal.SIGSTOP)
        client = in_background(server, insert(bench))
        until(lambda: waiting(server) == 1)
        dumps = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'"
        for thread in server.run_sql(dumps).splitlines()[1:]:
            server.run_sql(f"KILL {thread}")
        running.process.send_signal(signal.SIGCONT)
        client.join()
        until(lambda: " the source is back " in running.text)
        execute(server, insert(bench))
        assert running.stop() == 0
    assert [event[0]["seqno"] for event in finished(fragments(bench.config))] == [0, 1, 2]


@MYSQL_FIRST
def test_source_that_gave_up_waiting_is_reported_until_it_waits_again(bench: Bench, server: Mysqld) -> None:
    timeout = f"{plugin(server)}_timeout"
    with bench.start() as running:
        running.online()
        execute(server, insert(bench))
        until(lambda: "commits on the source wait until Kafka has them" in running.text)
        server.run_sql(f"SET GLOBAL {timeout} = 200")
        running.process.send_signal(signal.SIGSTOP)
        execute(server, insert(bench), insert(bench))  # the first one gives up, the second does not wait
        assert not state(server).on
        assert state(server).not_waited >= 2
        problems = status_problems(bench)
        assert [line for line in problems if "semi-synchronous replication is OFF" in line]
        running.process.send_signal(signal.SIGCONT)
        until(lambda: state(server).on)
        server.run_sql(f"SET GLOBAL {timeout} = 3600000")
        execute(server, insert(bench))
        assert not [line for line in status_problems(bench) if "semi-synchronous" in line]
        assert running.stop() == 0
    assert len(finished(fragments(bench.config))) == 4


def status_problems(bench: Bench) -> list[str]:
    from connector.status.collect import collect
    from connector.status.report import End, LagLimits

    found = collect(bench.config, LagLimits(), ends=frozenset({End.PRODUCER}))
    assert found.producer.semi_sync == (
        "OFF" if any("semi-sync" in problem for problem in texts(found.problems)) else "ON"
    )
    return texts(found.problems)


@pytest.mark.parametrize(
    ("statement", "setting", "hint"),
    [
        ("{plugin}_enabled = OFF", "{plugin}_enabled", "{plugin}_enabled = ON;"),
        ("{plugin}_wait_point = 'AFTER_COMMIT'", "{plugin}_wait_point", "{plugin}_wait_point = 'AFTER_SYNC';"),
    ],
)
def test_source_that_would_not_keep_the_promise_is_refused(
    bench: Bench, server: Mysqld, statement: str, setting: str, hint: str
) -> None:
    name = plugin(server)
    try:
        server.run_sql(f"SET GLOBAL {statement.format(plugin=name)}")
        with session(bench.config.source) as connection, pytest.raises(PreflightError) as refused:
            preflight(connection, bench.config.source, snapshot=False)
    finally:
        server.run_sql(f"SET GLOBAL {name}_wait_point = 'AFTER_SYNC'; SET GLOBAL {name}_enabled = ON")
    assert refused.value.where["setting"] == setting.format(plugin=name)
    assert hint.format(plugin=name) in refused.value.hint


def refusal(bench: Bench) -> str:
    """The message with which `thl produce` refuses the source, once."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.thl", "produce"],
        env={**os.environ, **bench.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ended.returncode == PreflightError.exit_code, ended.stderr
    _, _, said = ended.stderr.partition("thl: ")
    assert "thl: " not in said
    assert "Traceback" not in ended.stderr
    assert "prerequisites are missing" not in said
    return said


def goes_online(bench: Bench) -> None:
    with bench.start() as running:
        running.online()
        assert running.stop() == 0


def test_source_that_does_not_wait_is_refused_with_the_statement_that_helps(bench: Bench, server: Mysqld) -> None:
    name = plugin(server)
    remedy = f"SET {'GLOBAL' if server.name == 'mariadb' else 'PERSIST'} {name}_enabled = ON;"
    server.run_sql(f"SET GLOBAL {name}_enabled = OFF")
    said = refusal(bench)
    assert "source.semi_sync needs a source that waits for acknowledgements" in said
    assert f"setting={name}_enabled found=OFF needed=ON" in said
    assert remedy in said
    server.run_sql(remedy)
    goes_online(bench)


@pytest.mark.servers
def test_source_without_the_plugin_is_refused_until_it_is_installed(kafka_broker: Broker, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    own = mysql_programs().options.get("plugin_dir", "/usr/lib/mysql/plugin")
    with make_server("mysql", tmp_path / "mysql", plugin_dir=str(plugins)) as source:
        bench = Bench(source, kafka_broker, tmp_path)
        bench.settings |= {"THL_SOURCE__SEMI_SYNC": "true", "THL_SOURCE__START": "now"}
        bench.make_table()
        install = "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';"
        said = refusal(bench)
        assert "source.semi_sync needs the plugin for semi-synchronous replication on the source" in said
        assert f"{install} SET PERSIST rpl_semi_sync_source_enabled = ON;" in said
        assert f"The file must be in {plugins} on the source's host" in said
        assert "set source.semi_sync: false" in said
        with pytest.raises(SandboxError, match=r"Can't open shared library '.*plugins/semisync_source.so'"):
            source.run_sql(install)
        bench.settings["THL_SOURCE__SEMI_SYNC"] = "false"
        goes_online(bench)
        bench.settings["THL_SOURCE__SEMI_SYNC"] = "true"
        (plugins / "semisync_source.so").symlink_to(Path(own, "semisync_source.so"))
        source.run_sql(f"{install} SET PERSIST rpl_semi_sync_source_enabled = ON;")
        goes_online(bench)


@pytest.mark.servers
def test_mysql_56_is_refused_for_it_shows_changes_before_it_waits(kafka_broker: Broker, tmp_path: Path) -> None:
    try:
        mysql56_folder()
    except SandboxError as error:
        pytest.skip(f"MySQL 5.6 cannot be had: {error.message}")
    with MySql56Server(tmp_path / "mysql56", die_with_parent=True) as source:
        bench = Bench(source, kafka_broker, tmp_path)
        bench.settings |= {"THL_SOURCE__SEMI_SYNC": "true", "THL_SOURCE__START": "now"}
        bench.make_table()
        said = refusal(bench)
        assert "source.semi_sync needs a source that waits before a commit's changes are visible" in said
        assert "server=MySQL 5.6" in said
        assert "set source.semi_sync: false, or upgrade the source to MySQL 5.7" in said
        assert "INSTALL PLUGIN" not in said
        bench.settings["THL_SOURCE__SEMI_SYNC"] = "false"
        goes_online(bench)


def test_least_privileges_suffice_and_each_missing_one_is_refused_by_name(bench: Bench, server: Mysqld) -> None:
    file = f"{server.name}-source.sql"
    ((replicates, monitors),) = (grant.removesuffix(" ON *.*").split(", ") for grant in granted(file, "log"))
    (reads,) = granted(file, "tables", schema=bench.service)
    enabled = f"SET GLOBAL {plugin(server)}_enabled"
    server.run_sql(f"{enabled} = OFF")  # or CREATE USER would wait
    with (
        a_user(server, f"{replicates} ON *.*", reads) as cannot_monitor,
        a_user(server, f"{monitors} ON *.*", reads) as cannot_replicate,
        a_user(server, f"{replicates}, {monitors} ON *.*", reads) as least,
    ):
        server.run_sql(f"{enabled} = ON")
        try:
            for user, lacking in ((cannot_monitor, monitors), (cannot_replicate, replicates)):
                bench.settings |= user_of(user)
                said = refusal(bench)
                assert f"the user lacks {lacking}" in said
                assert f"GRANT {lacking} ON *.* TO " in said
            with bench.start(**user_of(least)) as running:
                running.online()
                before = state(server)
                execute(server, insert(bench))
                assert state(server).waited > before.waited
                assert running.stop() == 0
        finally:
            server.run_sql(f"{enabled} = OFF")


def user_of(source: Source) -> dict[str, str]:
    return {"THL_SOURCE__USER": source.user, "THL_SOURCE__PASSWORD": source.password.get_secret_value()}


def test_settings_that_weaken_the_promise_are_warned_of(bench: Bench, server: Mysqld) -> None:
    name = plugin(server)
    role = "slave" if server.name == "mariadb" else "replica"
    try:
        server.run_sql(f"SET GLOBAL {name}_timeout = 10000; SET GLOBAL {name}_wait_no_{role} = OFF")
        with session(bench.config.source) as connection:
            warnings = preflight(connection, bench.config.source, snapshot=False).warnings
    finally:
        server.run_sql(f"SET GLOBAL {name}_timeout = 3600000; SET GLOBAL {name}_wait_no_{role} = ON")
    assert any(f"{name}_timeout is 10000: after 10 s" in warning for warning in warnings)
    assert any(f"{name}_wait_no_{role} is OFF" in warning for warning in warnings)


def test_initial_load_is_refused_while_commits_would_wait_for_it(bench: Bench, server: Mysqld) -> None:
    with session(bench.config.source) as connection, pytest.raises(PreflightError) as refused:
        preflight(connection, bench.config.source, snapshot=True)
    assert refused.value.where["setting"] == f"{plugin(server)}_timeout"
    assert "source.semi_sync: false" in refused.value.hint


@MYSQL_FIRST
def test_initial_load_ends_with_commits_that_wait(bench: Bench, server: Mysqld) -> None:
    name = plugin(server)
    server.run_sql(f"SET GLOBAL {name}_timeout = 500")
    try:
        with bench.start(THL_SOURCE__START="snapshot") as running:
            running.loaded()
            until(lambda: state(server).on)
            server.run_sql(f"SET GLOBAL {name}_timeout = 3600000")
            before = state(server)
            execute(server, insert(bench))
            assert last_seqno(bench) == 5  # behind those of the load
            assert state(server).not_waited == before.not_waited
            assert running.stop() == 0
    finally:
        server.run_sql(f"SET GLOBAL {name}_timeout = 3600000")
    check(bench)


@MYSQL_FIRST
def test_heartbeats_of_the_producer_do_not_wait_for_the_producer_to_start(bench: Bench, server: Mysqld) -> None:
    table = {"THL_SOURCE__HEARTBEAT_TABLE": f"{bench.service}.heartbeats", "THL_SOURCE__HEARTBEAT_INTERVAL": "0.2"}
    before = state(server)
    with bench.start(**table) as running:
        running.online()
        until(lambda: last_seqno(bench) >= 3)
        assert running.stop() == 0
    assert state(server).not_waited == before.not_waited


def test_files_of_a_binary_log_refuse_the_option(bench: Bench, server: Mysqld) -> None:
    with bench.start("--from-files", str(server.data)) as running:
        assert running.ended() != 0
        assert "source.semi_sync needs the server" in running.text
        assert "--set source.semi_sync=false" in running.text


def lost_source(kind: str, broker: Broker, folder: Path, rounds: int) -> Iterator[tuple[int, int]]:
    """Kill the source and its producer under load and delete the source's data, in each round; with TLS in every other.

    Yields:
        The number of rows whose commits clients were told of, and that clients have read.
    """
    for number in range(rounds):
        tls = bool((number + (kind == "mysql")) % 2)
        settings = {"ssl": "ON"} if tls and kind == "mariadb" else {}  # the sandbox's has it off
        with make_server(kind, folder / str(number), **settings) as source:
            bench = Bench(source, broker, folder)
            bench.settings |= {"THL_SOURCE__SEMI_SYNC": "true", "THL_SOURCE__START": "now"}
            if tls:
                bench.settings |= {"THL_SOURCE__TLS": "true", "THL_SOURCE__TLS_VERIFY": "none"}
            source.run_sql(f"CREATE DATABASE {bench.service}")
            source.run_sql(f"CREATE TABLE {bench.service}.t (id INT PRIMARY KEY, v VARCHAR(200))")
            enable(source)
            with bench.start() as running:
                running.online()
                with writing(source, f"{bench.service}.t") as clients:
                    clients.until_told(100 + 20 * number)
                    clients.kill_the_source()
                    running.process.kill()
                    running.process.wait()
            shutil.rmtree(source.data)
        in_kafka = {row[0] for row in table_of(finished(fragments(bench.config)))}
        lost = (clients.told | clients.seen) - in_kafka
        assert not lost, f"round {number}: {len(lost)} rows of {len(clients.told)} are not in Kafka"
        yield len(clients.told), len(clients.seen)


@pytest.mark.faults
@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", *long("mariadb")])
def test_source_killed_and_its_data_deleted_loses_no_commit(kind: str, kafka_broker: Broker, tmp_path: Path) -> None:
    assert list(lost_source(kind, kafka_broker, tmp_path, rounds=1))


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.servers
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", SERVERS)
def test_source_killed_twenty_times_loses_no_commit(kind: str, kafka_broker: Broker, tmp_path: Path) -> None:
    rounds = list(lost_source(kind, kafka_broker, tmp_path, rounds=20))
    print(f"{kind}: rows told committed and read, by round: {rounds}")
    assert len(rounds) == 20
