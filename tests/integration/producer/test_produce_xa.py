"""XA transactions of a real MySQL through a real Kafka: published at their commit, also after kills."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka.log_reader import LogReader
from tests.support.long import long
from tests.support.producing import SMALL, Bench, last_seqno, until
from tests.support.producing import check as check_rows
from tests.support.servers.environment import Broker, SqlServer

OTHERS = 300  # transactions meanwhile
LARGE = 3000  # rows of about 100 bytes: several pieces


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    """A log of its own begins where the binary log does: no other test's commit may stand in it without its prepare."""
    for line in mysql_server.run_sql("XA RECOVER CONVERT XID").splitlines()[1:]:
        form, gtrid, _, data = line.split("\t")
        parts = data[2 : 2 + 2 * int(gtrid)], data[2 + 2 * int(gtrid) :]
        mysql_server.run_sql(f"XA ROLLBACK X'{parts[0]}',X'{parts[1]}',{form}")
    version = [int(number) for number in re.findall(r"\d+", mysql_server.run_sql("SELECT VERSION()"))]
    mysql_server.run_sql("RESET BINARY LOGS AND GTIDS" if version[:2] >= [8, 4] else "RESET MASTER")
    result = Bench(mysql_server, kafka_broker, tmp_path, settings={**SMALL, "THL_SOURCE__START": "earliest"})
    result.make_table()
    return result


def pending(bench: Bench) -> list[str]:
    """The xids that Kafka holds."""
    try:
        with LogReader(bench.config) as reader:
            state = reader.prepared()
    except BrokerUnavailable:
        return []
    return sorted(pending.xid for pending in state.pending)


def xid(bench: Bench, name: str) -> str:
    return f"'{bench.service}-{name}','b',3"


def logged(bench: Bench, name: str) -> str:
    return f"X'{f'{bench.service}-{name}'.encode().hex()}',X'62',3"


def prepare(bench: Bench, name: str, *, first: int, rows: int = 1) -> None:
    bench.sql(
        f"SET SESSION cte_max_recursion_depth = {rows + 1}; XA START {xid(bench, name)}; "
        f"INSERT INTO {bench.service}.t WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < "
        f"{rows - 1}) SELECT {first} + i, concat(repeat('x', 100), '{name}', i) FROM n; "
        f"XA END {xid(bench, name)}; XA PREPARE {xid(bench, name)}"
    )


def commit(bench: Bench, name: str) -> None:
    bench.sql(f"XA COMMIT {xid(bench, name)}")


def check(bench: Bench) -> list[list[dict[str, Any]]]:
    """As for any log; and what is pending is counted."""
    with LogReader(bench.config) as reader:
        position, state = reader.position(), reader.prepared()
    assert position is not None
    assert position.prepared == state.pending.kept
    return check_rows(bench)


def rows_of(event: list[dict[str, Any]]) -> list[int]:
    return [
        row["after"][0]
        for part in event
        for change in part["changes"]
        for row in change.get("rows", ())
        if row["after"]
    ]


def one_phase(bench: Bench, *, first: int, rows: int = 1) -> None:
    name = f"'o{bench.service}'"
    bench.sql(
        f"SET SESSION cte_max_recursion_depth = {rows + 1}; XA START {name}; INSERT INTO {bench.service}.t "
        f"WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {rows - 1}) "
        f"SELECT {first} + i, repeat('x', 100) FROM n; XA END {name}; XA COMMIT {name} ONE PHASE"
    )


def test_prepared_transaction_is_published_at_its_commit(bench: Bench) -> None:
    with bench.start() as producer:
        prepare(bench, "a", first=100)
        prepare(bench, "b", first=200, rows=2)
        bench.sql(f"INSERT INTO {bench.service}.t VALUES (50, 'between')")
        prepare(bench, "c", first=300)
        until(lambda: pending(bench) == sorted(logged(bench, name) for name in "abc"))
        commit(bench, "b")
        bench.sql(f"XA ROLLBACK {xid(bench, 'c')}")
        one_phase(bench, first=60)
        commit(bench, "a")
        until(lambda: last_seqno(bench) >= 6)
        assert producer.stop() == 0
    events = check(bench)
    assert [rows_of(event) for event in events[3:]] == [[50], [200, 201], [60], [100]]
    assert [event[-1]["metadata"].get("xid") for event in events[3:6]][:2] == [None, logged(bench, "b")]
    assert pending(bench) == []
    executed = bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1]
    with LogReader(bench.config) as reader:
        position = reader.position()
    assert position is not None
    assert position.gtid_set == executed
    told = events[4][-1]
    assert int(told["gtid"].rpartition(":")[2]) > int(told["metadata"]["xa_prepared"].rpartition(":")[2])


@pytest.mark.faults
@pytest.mark.parametrize("rows", [LARGE, *long(1)])
def test_prepared_changes_survive_the_producer_its_host_and_the_binary_log(bench: Bench, rows: int) -> None:
    with bench.start() as first:
        prepare(bench, "a", first=1000, rows=rows)
        prepare(bench, "gone", first=9000)
        until(lambda: len(pending(bench)) == 2)
        first.process.send_signal(signal.SIGKILL)
        first.ended()
    bench.sql("".join(f"INSERT INTO {bench.service}.t VALUES ({10 + number}, 'other');" for number in range(OTHERS)))
    with bench.start() as second:
        until(lambda: last_seqno(bench) >= 2 + OTHERS)
        second.process.send_signal(signal.SIGKILL)
        second.ended()
    shutil.rmtree(bench.folder)
    bench.folder.mkdir()
    bench.sql("FLUSH BINARY LOGS")
    bench.sql("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
    bench.insert_many(200)
    commit(bench, "a")
    bench.sql(f"XA ROLLBACK {xid(bench, 'gone')}")
    with bench.start(THL_SOURCE__ACCEPT_GTIDS_ALONE="true") as third:
        until(lambda: last_seqno(bench) >= 4 + OTHERS and pending(bench) == [])
        assert third.stop() == 0
    events = check(bench)
    assert rows_of(events[4 + OTHERS]) == list(range(1000, 1000 + rows))


@pytest.mark.faults
@pytest.mark.parametrize(
    ("point", "count", "rows"),
    [
        ("produce.prepared_before_commit", 1, LARGE),
        ("produce.prepared_after_commit", 2, LARGE),
        *long(
            ("produce.prepared_before_commit", 2, 1),
            ("produce.prepared_before_commit", 3, LARGE),
            ("produce.prepared_after_commit", 1, 1),
            ("produce.prepared_after_commit", 3, 1),
        ),
    ],
)
def test_producer_killed_with_a_prepared_transaction_publishes_it_once(
    bench: Bench, point: str, count: int, rows: int
) -> None:
    """The first are passed while it is prepared, the last when it is committed or rolled back."""
    with bench.start() as first:
        until(lambda: last_seqno(bench) >= 2)
        assert first.stop() == 0
    prepare(bench, "a", first=1000, rows=rows)
    prepare(bench, "b", first=9000)
    with bench.start(THL_CRASH_POINT=f"{point}:{count}") as killed:
        until(lambda: killed.process.poll() is not None or len(pending(bench)) == 2)
        commit(bench, "a")
        bench.sql(f"XA ROLLBACK {xid(bench, 'b')}")
        bench.sql(f"INSERT INTO {bench.service}.t VALUES (60, 'last')")
        until(lambda: killed.process.poll() is not None or last_seqno(bench) >= 4)
    with bench.start() as again:
        until(lambda: last_seqno(bench) >= 4 and pending(bench) == [])
        assert again.stop() == 0
    events = check(bench)
    assert [rows_of(event)[:1] for event in events[3:]] == [[1000], [60]]


@pytest.mark.faults
@pytest.mark.parametrize("point", ["produce.mid_event_before_commit:2", *long("produce.mid_event_after_commit:2")])
def test_producer_killed_within_a_committed_xa_event_publishes_it_once(bench: Bench, point: str) -> None:
    with bench.start() as first:
        prepare(bench, "a", first=1000, rows=LARGE)
        until(lambda: len(pending(bench)) == 1 and last_seqno(bench) >= 2)
        assert first.stop() == 0
    commit(bench, "a")
    with bench.start(THL_CRASH_POINT=point) as killed:
        assert killed.ended() == -signal.SIGKILL
    assert len(pending(bench)) == 1
    with bench.start() as again:
        until(lambda: last_seqno(bench) >= 3)
        assert again.stop() == 0
    check(bench)
    assert pending(bench) == []


def test_one_phase_commit_in_many_batches_is_one_event(bench: Bench) -> None:
    with bench.start() as first:
        one_phase(bench, first=100, rows=LARGE)
        until(lambda: last_seqno(bench) >= 3)
        assert first.stop() == 0
    assert len(check(bench)[3]) > 10
    with bench.start() as again:  # which compares the log's last transaction with the source's
        again.online()
        bench.sql(f"INSERT INTO {bench.service}.t VALUES (60, 'last')")
        until(lambda: last_seqno(bench) >= 4)
        assert again.stop() == 0
    check(bench)


def test_a_commit_of_what_was_prepared_before_the_log_is_refused(bench: Bench) -> None:
    prepare(bench, "a", first=1000)
    bench.settings["THL_SOURCE__START"] = "now"
    with bench.start() as producer:
        producer.online()
        commit(bench, "a")
        assert producer.ended() == 6
    assert logged(bench, "a") in producer.text
    assert "XA RECOVER" in producer.text


def test_initial_load_waits_for_prepared_transactions(bench: Bench) -> None:
    prepare(bench, "a", first=1000)
    bench.settings["THL_SOURCE__START"] = "snapshot"
    try:
        with bench.start() as producer:
            assert producer.ended() == 3
        assert logged(bench, "a") in producer.text
    finally:
        commit(bench, "a")
    with bench.start() as again:
        until(lambda: " loaded service=" in again.text)
        assert again.stop() == 0
    check(bench)


def test_lost_prepared_records_are_damage(bench: Bench) -> None:
    with bench.start() as first:
        prepare(bench, "a", first=1000)
        until(lambda: len(pending(bench)) == 1)
        assert first.stop() == 0
    topic = bench.config.prepared_topic
    admin = AdminClient({"bootstrap.servers": bench.config.kafka.bootstrap})  # its answers end with it
    admin.delete_topics([topic])[topic].result(30)
    try:
        with bench.start() as again:
            assert again.ended() == LogDamaged.exit_code
        assert "expected=1 found=0" in again.text
    finally:
        bench.sql(f"XA ROLLBACK {xid(bench, 'a')}")
