"""A MySQL whose log was reset, or has transactions without GTIDs: detected, or read by position."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.kafka.log_reader import LogReader
from connector.log.transaction.position import PositionRecord
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.status.collect import collect
from connector.status.report import End, LagLimits, ServiceState
from tests.support.producing import Bench, check, finished, fragments, last_seqno, table_of, until
from tests.support.servers.environment import Broker

pytestmark = pytest.mark.servers

SMALL = {**MYSQL_FAST, "innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "32M"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlServer]:
    with MySqlServer(tmp_path_factory.mktemp("reset"), settings=SMALL, die_with_parent=True) as found:
        yield found


@pytest.fixture
def bench(server: MySqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    result = Bench(server, kafka_broker, tmp_path, settings={"THL_PUBLISH__IDLE_POSITION_SECONDS": "0.2"})
    server.run_sql("RESET BINARY LOGS AND GTIDS")
    result.make_table()
    return result


def insert(bench: Bench, *texts: str) -> None:
    bench.sql("".join(f"INSERT INTO {bench.service}.t (v) VALUES ('{text}');" for text in texts))


def position(bench: Bench) -> PositionRecord:
    with LogReader(bench.config) as reader:
        found = reader.position()
    assert found is not None
    return found


def published(bench: Bench, *texts: str) -> None:
    """A producer that loads, or goes on, publishes these, and ends at the end of the source's log."""
    new = last_seqno(bench) < 0
    with bench.start() as running:
        if new:
            running.loaded()
        else:
            running.online()
        before = last_seqno(bench)
        insert(bench, *texts)
        until(lambda: last_seqno(bench) == before + len(texts))
        end = bench.sql("SHOW BINARY LOG STATUS").splitlines()[1].split("\t")
        until(lambda: (position(bench).resume.file, position(bench).resume.offset) == (end[0], int(end[1])))
        assert running.stop() == 0


def executed(bench: Bench) -> int:
    return int(bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1].rpartition("-")[2])


def reset(bench: Bench, transactions: int, *, flush_after: int = 0) -> None:
    """Reset the log, so that the same GTIDs are given to other transactions."""
    bench.sql("RESET BINARY LOGS AND GTIDS")
    for number in range(1, transactions + 1):
        insert(bench, f"anew {number}")
        if number == flush_after:
            bench.sql("FLUSH BINARY LOGS")


def purge(bench: Bench) -> str:
    """Purge all files but the newest, after every dump connection has ended."""
    newest = bench.sql("SHOW BINARY LOG STATUS").splitlines()[1].split("\t")[0]

    def gone() -> bool:
        bench.sql(f"PURGE BINARY LOGS TO '{newest}'")
        return bench.sql("SHOW BINARY LOGS").splitlines()[1].split("\t")[0] == newest

    until(gone)
    return newest


def refused(bench: Bench, *options: str) -> str:
    with bench.start(*options) as producer:
        assert producer.ended() == 8, producer.text
        return producer.text


def test_a_reset_whose_first_file_was_purged_is_refused(bench: Bench) -> None:
    """Its GTIDs are exactly those of the log, and the last one that could be compared is gone."""
    published(bench, "third")
    count = executed(bench)
    place = position(bench).resume
    reset(bench, count, flush_after=count)
    newest = purge(bench)
    assert newest > place.file
    insert(bench, "behind")
    told = refused(bench)
    assert "the source has purged the file that was read last" in told
    assert "source.accept_gtids_alone=true" in told
    assert position(bench).resume == place


def test_reset_without_loss_can_be_accepted(bench: Bench) -> None:
    published(bench, "third")
    bench.sql("FLUSH BINARY LOGS")
    purge(bench)
    assert "purged the file that was read last" in refused(bench)
    bench.settings["THL_SOURCE__ACCEPT_GTIDS_ALONE"] = "true"
    published(bench, "fourth")
    check(bench)


def test_a_reset_whose_files_have_the_same_names_is_refused(bench: Bench) -> None:
    """The file in which the position is is there again; the log's last event is not, to be compared."""
    published(bench, "third")
    other = f"{bench.service}_not"
    with bench.start() as running:  # past an event that is not for it, in a second file
        running.online()
        bench.sql(f"FLUSH BINARY LOGS; CREATE DATABASE {other}; DROP DATABASE {other}")
        end = bench.sql("SHOW BINARY LOG STATUS").splitlines()[1].split("\t")
        until(lambda: (position(bench).resume.file, position(bench).resume.offset) == (end[0], int(end[1])))
        assert running.stop() == 0
    before = position(bench)
    assert before.created
    assert before.finished is not None
    assert before.finished.start.file < before.resume.file
    count = executed(bench)
    bench.sql("RESET BINARY LOGS AND GTIDS")
    for number in range(count - 1):
        insert(bench, f"anew {number}")
    # A file tells the second in which it was begun.
    until(lambda: int(bench.sql("SELECT UNIX_TIMESTAMP()").splitlines()[1]) > before.created)
    bench.sql("FLUSH BINARY LOGS")
    insert(bench, *(f"anew, too {number}" for number in range(20)))
    assert purge(bench) == before.resume.file
    told = refused(bench)
    assert "was_begun=" in told
    assert "RESET BINARY LOGS AND GTIDS" in told


def test_status_without_gtids_tells_a_producer_that_lags(bench: Bench) -> None:
    def state() -> tuple[ServiceState, int | None, bool]:
        found = collect(bench.config, LagLimits(), ends=frozenset({End.PRODUCER})).producer
        return found.state, found.events_behind, bool(found.seconds_behind)

    there = (ServiceState.ONLINE, 0, False)
    try:
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
            bench.sql(f"SET GLOBAL gtid_mode = {mode}")
        with bench.start(THL_SOURCE__DUMP_HEARTBEAT="0.5") as running:
            running.loaded()
            insert(bench, "third")
            until(lambda: state() == there)
            bench.sql("FLUSH BINARY LOGS")  # nothing is missing beyond a new file's beginning
            until(lambda: state() == there)
            running.process.send_signal(signal.SIGSTOP)
            insert(bench, "fourth")
            assert state() == (ServiceState.BEHIND, None, True)
            running.process.send_signal(signal.SIGCONT)
            until(lambda: state() == there)
            assert running.stop() == 0
    finally:
        for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
            bench.sql(f"SET GLOBAL gtid_mode = {mode}")
    check(bench)


def test_anonymous_transaction_is_published_after_gtid_mode_is_on_again(bench: Bench) -> None:
    published(bench, "third")
    insert(bench, "under a GTID")
    for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE"):
        bench.sql(f"SET GLOBAL gtid_mode = {mode}")
    insert(bench, "without")
    for mode in ("ON_PERMISSIVE", "ON"):
        bench.sql(f"SET GLOBAL gtid_mode = {mode}")
    insert(bench, "under a GTID again")
    before = last_seqno(bench)
    with bench.start() as producer:  # by GTIDs the server would leave it out without a word
        assert producer.ended() == 3, producer.text
        assert "has a transaction without a GTID" in producer.text
        assert "SET GLOBAL gtid_mode = ON_PERMISSIVE;" in producer.text
    bench.sql("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    with bench.start() as running:
        running.online()
        until(lambda: last_seqno(bench) == before + 3)
        assert running.stop() == 0
    bench.sql("SET GLOBAL gtid_mode = ON")
    events = check(bench)
    assert [event[0]["gtid"] is None for event in events[before + 1 :]] == [False, True, False]
    published(bench, "last")  # the log's last event has a GTID, what stands before it in the file has none
    check(bench)


def test_anonymous_transaction_while_the_producer_runs_is_published_once(bench: Bench) -> None:
    with bench.start() as running:
        running.loaded()
        before = last_seqno(bench)
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE"):
            bench.sql(f"SET GLOBAL gtid_mode = {mode}")
        insert(bench, "without")
        for mode in ("ON_PERMISSIVE", "ON"):
            bench.sql(f"SET GLOBAL gtid_mode = {mode}")
        insert(bench, "with")
        until(lambda: last_seqno(bench) == before + 2 or running.process.poll() is not None)
        assert running.stop() in (0, 3), running.text
    with bench.start() as again:
        again.online()
        until(lambda: last_seqno(bench) == before + 2)
        assert again.stop() == 0
    assert table_of(finished(fragments(bench.config))) == bench.rows()
