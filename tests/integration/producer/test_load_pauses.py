"""A load waits for a source that lags, or that purges what the stream needs next, says so, and goes on afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from connector.check.checks import check_source
from connector.check.result import CheckState
from connector.cli import run as thl
from connector.config.snapshot import InitialLoad
from connector.config.source import Source
from connector.errors import MissingPrivilege
from connector.log.ids import Kind
from connector.mysql.server.connection import connect
from connector.mysql.server.replication_status import replication_channels
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.mysqld import Mysqld
from connector.sandbox.settings import MYSQL_FAST
from tests.integration.producer.test_table_loads import SMALL_ROUNDS, ended, events, go_on, replayed, stopped
from tests.support.grants import granted
from tests.support.loading import a_user, as_source, checked
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.written_tables import ROWS, asked, fill, on_source

LIMITED = {**SMALL_ROUNDS, "THL_SOURCE__SNAPSHOT__MAX_REPLICA_LAG": "2"}
SMALL = {**MYSQL_FAST, "innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "32M"}
SMALL_MARIADB = {"innodb_buffer_pool_size": "32M", "log_slave_updates": "ON"}
LEAST = granted("mariadb-source.sql", "log", "tables", schema="*")


class Pair:
    """A server, and a replica of it that is the producer's source."""

    def __init__(self, first: Mysqld, replica: Mysqld) -> None:
        self.first, self.replica = first, replica
        self.mariadb = isinstance(replica, MariaDbServer)

    def follow(self, channel: str = "", delay: int = 0) -> None:
        """Let the replica follow the first server, by a channel of this name, stopped until now."""
        self._change(channel, self.first.port, delay)
        self._run("START", channel)

    def add_stopped(self, channel: str) -> None:
        """Give the replica a channel that never runs. MariaDB refuses a second one of the same address."""
        self._change(channel, 1, 0)

    def _change(self, channel: str, port: int, delay: int) -> None:
        role = "MASTER" if self.mariadb else "SOURCE"
        at = (
            f"{role}_HOST = '{self.first.host}', {role}_PORT = {port}, {role}_USER = '{self.first.user}', "
            f"{role}_PASSWORD = '{self.first.password}', {role}_DELAY = {delay}"
        )
        if self.mariadb:
            by = "MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID = slave_pos"
            self.replica.run_sql(f"CHANGE MASTER '{channel}' TO {at}, {by}")
        else:
            by = "SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
            self.replica.run_sql(f"CHANGE REPLICATION SOURCE TO {at}, {by} FOR CHANNEL '{channel}'")

    def stop(self, channel: str = "") -> None:
        """Stop a channel of the replica."""
        self._run("STOP", channel)

    def _run(self, what: str, channel: str, thread: str = "") -> None:
        of = f"SLAVE '{channel}' {thread}" if self.mariadb else f"REPLICA {thread} FOR CHANNEL '{channel}'"
        self.replica.run_sql(f"{what} {of}")

    def forget(self, channel: str) -> None:
        """Remove a stopped channel of the replica."""
        self.replica.run_sql(
            f"RESET SLAVE '{channel}' ALL" if self.mariadb else f"RESET REPLICA ALL FOR CHANNEL '{channel}'"
        )

    def stop_applying(self) -> None:
        """Stop the thread that applies what the replica has received."""
        self._run("STOP", "", "SQL_THREAD")

    def apply(self) -> None:
        """Start it again."""
        self._run("START", "", "SQL_THREAD")

    def has(self, table: str, rows: int) -> bool:
        """Whether the replica has rows of a table."""
        name = table.replace(".", "' AND TABLE_NAME = '")
        there = self.replica.run_sql(f"SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{name}'")
        return bool(there) and self.replica.run_sql(f"SELECT COUNT(*) FROM {table}").split()[-1] == str(rows)

    def lag(self) -> list[float | None]:
        """The lag of each channel, as the replica says."""
        connection = connect(as_source(self.replica))
        try:
            return [channel.lag for channel in replication_channels(connection)]
        finally:
            connection.close()


@contextmanager
def mysql_pair(folder: Path) -> Iterator[Pair]:
    first = MySqlServer(folder / "first", settings=SMALL, die_with_parent=True)
    replica = MySqlServer(folder / "replica", settings={**SMALL, "server_id": "2"}, die_with_parent=True)
    with first, replica:
        yield Pair(first, replica)


@contextmanager
def mariadb_pair(folder: Path) -> Iterator[Pair]:
    first = MariaDbServer(folder / "first", settings=SMALL_MARIADB, die_with_parent=True)
    replica = MariaDbServer(folder / "replica", settings={**SMALL_MARIADB, "server_id": "3"}, die_with_parent=True)
    with first, replica:
        yield Pair(first, replica)


def delayed(pair: Pair) -> Callable[[], None]:
    """Let the replica lag by a delay; return what ends that."""
    pair.stop()
    pair.follow(delay=3600)
    pair.first.run_sql("CREATE DATABASE late")
    until(lambda: (pair.lag()[0] or 0.0) > 2)

    def end() -> None:
        pair.stop()
        pair.follow()

    return end


def stops_applying(pair: Pair) -> Callable[[], None]:
    """Let the replica have a thread that does not run; return what ends that."""
    pair.stop_applying()
    return pair.apply


def other_stops(pair: Pair) -> Callable[[], None]:
    """Let the replica have a channel that is up to date, and one that never ran; return what ends that."""
    pair.add_stopped("other")
    until(lambda: sorted(map(str, pair.lag())) == ["0.0", "None"])
    return lambda: pair.forget("other")


@dataclass(frozen=True)
class Lags:
    """A way in which a replica lags.

    Args:
        servers: makes the pair.
        begin: lets it lag, and returns what ends that.
        cause: the cause of the pause.
        names: what the reason names.
    """

    servers: Callable[[Path], AbstractContextManager[Pair]]
    begin: Callable[[Pair], Callable[[], None]]
    cause: str
    names: str


LAGS = {
    "a delayed MySQL": Lags(mysql_pair, delayed, "replica_lag", "behind its own source, 127.0.0.1:"),
    "a MySQL that applies nothing": Lags(mysql_pair, stops_applying, "replica_stopped", "Replica_SQL_Running: No"),
    "one of a MySQL's channels": Lags(mysql_pair, other_stops, "replica_stopped", "channel other does not run"),
    "a delayed MariaDB": Lags(mariadb_pair, delayed, "replica_lag", "behind its own source, 127.0.0.1:"),
    "one of a MariaDB's channels": Lags(mariadb_pair, other_stops, "replica_stopped", "channel other does not run"),
}


@pytest.mark.long
@pytest.mark.parametrize("lags", LAGS.values(), ids=LAGS)
def test_load_waits_for_a_source_that_lags_as_a_replica(
    lags: Lags, kafka_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cause, names = lags.cause, lags.names
    with lags.servers(tmp_path) as pair:
        bench = Bench(pair.replica, kafka_broker, tmp_path, settings=dict(LIMITED))
        fill(replace(bench, mysql=pair.first), ["t"])  # MariaDB knows of no lag before it has replicated something
        pair.follow()
        until(lambda: pair.has(f"{bench.service}.t", ROWS))
        catches_up = lags.begin(pair)
        with bench.start() as producing:
            producing.online()
            assert asked(bench, f"{bench.service}.t") == 0
            until(lambda: "no round of loads begins" in producing.text)
            capsys.readouterr()
            assert asked(bench, "--status", "--format", "json") == 0
            (load,) = json.loads(capsys.readouterr().out)
            assert (load["state"], load["pause"]["cause"]) == ("waiting", cause)
            assert names in load["pause"]["why"]
            assert asked(bench, "--status") == 0
            assert names in capsys.readouterr().out
            assert of_service(bench, capsys, "status")["producer"]["loadPause"]["cause"] == cause
            assert not any(event.kind is Kind.LOAD for event in events(bench))
            catches_up()
            until(lambda: ended(bench, "t"))
            assert producing.stop() == 0, producing.text
        assert producing.text.count(f"no round of loads begins service={bench.service} cause={cause} ") == 1
        assert producing.text.index("rounds of loads begin again") < producing.text.index("published a round")
        assert replayed(bench).of("t") == on_source(bench, "t")


def of_service(bench: Bench, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What a command prints as JSON of the producer's end."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in bench.environment.items():
            patched.setenv(name, value)
        capsys.readouterr()
        thl([*arguments, "--producer", "--format", "json"])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found


def test_load_waits_before_the_source_purges_what_the_stream_needs(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Binary logs expire after ten minutes. The producer stops within a round; the source goes on to other files."""
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL_ROUNDS))
    fill(bench, ["t"])
    before = mysql_server.run_sql("SELECT @@GLOBAL.binlog_expire_logs_seconds").split()[-1]
    mysql_server.run_sql("SET GLOBAL binlog_expire_logs_seconds = 600")
    try:
        with bench.start(THL_STOP_POINT="load.before_rows:4") as producing:
            producing.online()
            assert asked(bench, f"{bench.service}.t") == 0
            until(lambda: stopped(producing))
            # More than the stream gives at a time, so that it is asked for a round before the end.
            filler = f"INSERT INTO {bench.service}.filler (v) VALUES (REPEAT('x', 300000));"
            bench.sql(
                f"CREATE TABLE {bench.service}.filler (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB); {filler * 60}"
                f"FLUSH BINARY LOGS; UPDATE {bench.service}.t SET n = n + 1; FLUSH BINARY LOGS; {filler}"
            )
            found = of_service(bench, capsys, "status")["producer"]
            assert found["loadPause"]["cause"] == "purge"
            assert 0 < found["secondsUntilPurge"] <= 600
            old = found["resume"].partition(":")[0]
            capsys.readouterr()
            assert asked(bench, "--status") == 0
            shown = capsys.readouterr().out
            assert f"no round of a load begins: the stream is in {old}, and the source" in shown
            assert "the source keeps the file that the producer needs next for " in shown
            go_on(producing)
            until(lambda: ended(bench, "t"))
            assert producing.stop() == 0, producing.text
    finally:
        mysql_server.run_sql(f"SET GLOBAL binlog_expire_logs_seconds = {before}")
    assert producing.text.count(f"no round of loads begins service={bench.service} cause=purge ") == 1
    assert f"the stream is in {old}" in producing.text
    assert "rounds of loads begin again" in producing.text
    assert replayed(bench).of("t") == on_source(bench, "t")


def limited(source: Source) -> Source:
    return source.model_copy(update={"snapshot": InitialLoad(max_replica_lag=5)})


def test_user_that_may_not_see_the_lag_is_refused_where_loads_depend_on_it(
    mariadb_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    with a_user(mariadb_server, *LEAST, server_id=7499) as source:
        checked(source)  # without a limit nothing asks for the lag
        with pytest.raises(MissingPrivilege, match="SLAVE MONITOR") as refused:
            checked(limited(source))
        bench = Bench(mariadb_server, kafka_broker, tmp_path)
        config = bench.config.model_copy(update={"source": limited(source)})
        (failed,) = [one for one in check_source(config, lambda: True, Future()) if one.state is CheckState.FAILED]
        assert failed.name == "grants"
        assert "source.snapshot.max_replica_lag" in failed.found
        mariadb_server.run_sql(failed.remedy.partition(";")[0])
        checked(limited(source))
        assert refused.value.hint == failed.remedy


def test_replication_that_does_not_run_is_a_warning_where_loads_depend_on_it(mysql_server: SqlServer) -> None:
    source = as_source(mysql_server)
    mysql_server.run_sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1")
    try:
        assert not [one for one in checked(source).warnings if "replication" in one]
        (warning,) = [one for one in checked(limited(source)).warnings if "replication" in one]
    finally:
        mysql_server.run_sql("RESET REPLICA ALL")
    assert warning.startswith("no round of a load can begin: the source's replication from 127.0.0.1:1 does not run")
    assert not [one for one in checked(limited(source)).warnings if "replication" in one]
