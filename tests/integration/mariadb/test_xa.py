"""XA transactions of a real MariaDB through a real Kafka: published at their commit, also after kills."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.kafka.log_reader import LogReader
from tests.integration.mariadb.test_source import MariaBench, purge
from tests.integration.producer.test_produce import SMALL
from tests.integration.producer.test_produce_xa import LARGE, check, last_seqno, logged, pending, rows_of, xid
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, SqlServer

LOADED = 5  # events of the initial load
OTHERS = 20  # transactions meanwhile


@pytest.fixture
def bench(mariadb_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    result = MariaBench(mariadb_server, kafka_broker, tmp_path, settings=dict(SMALL))
    result.make_table()
    yield result
    for line in mariadb_server.run_sql("XA RECOVER FORMAT='SQL'").splitlines()[1:]:
        mariadb_server.run_sql(f"XA ROLLBACK {line.split(chr(9))[3]}")


def prepare(bench: Bench, name: str, *, first: int, rows: int = 1, end: str = "PREPARE") -> None:
    last = "XA COMMIT {} ONE PHASE" if end == "ONE PHASE" else "XA PREPARE {}"
    bench.sql(
        f"USE {bench.service}; XA START {xid(bench, name)}; INSERT INTO {bench.service}.t SELECT {first} + seq, "
        f"concat(repeat('x', 100), '{name}', seq) FROM seq_0_to_{rows - 1}; "
        f"XA END {xid(bench, name)}; {last.format(xid(bench, name))}"
    )


def decide(bench: Bench, verb: str, name: str) -> None:
    bench.sql(f"XA {verb} {xid(bench, name)}")


def test_prepared_transaction_is_published_at_its_commit(bench: Bench) -> None:
    """And when the producer, its host and the binary log with the prepare have gone in between."""
    with bench.start() as first:
        until(lambda: last_seqno(bench) >= LOADED - 1)
        prepare(bench, "a", first=1000, rows=LARGE)
        prepare(bench, "b", first=200, rows=2)
        prepare(bench, "gone", first=9000)
        until(lambda: pending(bench) == sorted(logged(bench, name) for name in ("a", "b", "gone")))
        first.process.send_signal(signal.SIGKILL)
        first.ended()
    bench.sql("".join(f"INSERT INTO {bench.service}.t VALUES ({10 + number}, 'other');" for number in range(OTHERS)))
    with bench.start() as second:
        until(lambda: last_seqno(bench) >= LOADED - 1 + OTHERS)
        second.process.send_signal(signal.SIGKILL)
        second.ended()
    shutil.rmtree(bench.folder)
    bench.folder.mkdir()
    purge(bench.mysql)
    decide(bench, "COMMIT", "b")
    decide(bench, "ROLLBACK", "gone")
    prepare(bench, "one", first=300, end="ONE PHASE")
    decide(bench, "COMMIT", "a")
    with bench.start(THL_SOURCE__ACCEPT_GTIDS_ALONE="true") as third:
        until(lambda: last_seqno(bench) >= LOADED + OTHERS + 2 and pending(bench) == [])
        assert third.stop() == 0

    with bench.start() as again:  # it reads the log's last transaction, an XA COMMIT, again
        again.online()
        bench.sql(f"INSERT INTO {bench.service}.t VALUES (60, 'last')")
        until(lambda: last_seqno(bench) >= LOADED + OTHERS + 3)
        assert again.stop() == 0

    events = check(bench)
    decided = events[LOADED + OTHERS :]
    assert [rows_of(event) for event in decided] == [[200, 201], [300], list(range(1000, 1000 + LARGE)), [60]]
    told = decided[0][-1]
    assert told["metadata"]["xid"] == logged(bench, "b")
    prepared, committed = (int(gtid.rpartition("-")[2]) for gtid in (told["metadata"]["xa_prepared"], told["gtid"]))
    assert committed - prepared == OTHERS + 2  # that of `gone`, the others, and its own
    with LogReader(bench.config) as reader:
        position = reader.position()
    assert position is not None
    assert position.gtid_set == bench.sql("SELECT @@gtid_binlog_pos").splitlines()[1]


@pytest.mark.faults
@pytest.mark.parametrize("point", ["produce.prepared_before_commit:1", "produce.prepared_after_commit:2"])
def test_producer_killed_with_a_prepared_transaction_publishes_it_once(bench: Bench, point: str) -> None:
    with bench.start() as first:
        until(lambda: last_seqno(bench) >= LOADED - 1)
        assert first.stop() == 0
    prepare(bench, "a", first=1000, rows=LARGE)
    prepare(bench, "b", first=9000)
    with bench.start(THL_CRASH_POINT=point) as killed:
        assert killed.ended() == -signal.SIGKILL
    with bench.start() as again:
        until(lambda: len(pending(bench)) == 2)
        decide(bench, "COMMIT", "a")
        decide(bench, "ROLLBACK", "b")
        until(lambda: last_seqno(bench) >= LOADED and pending(bench) == [])
        assert again.stop() == 0
    assert [rows_of(event)[:1] for event in check(bench)[LOADED:]] == [[1000]]


def test_load_that_cannot_see_prepared_transactions_is_refused(bench: Bench) -> None:
    prepare(bench, "a", first=1000)
    with bench.start() as loading:
        assert loading.ended() == 3
    assert f"{bench.service}-a" in loading.text
    assert "XA RECOVER" in loading.text


def test_a_commit_of_what_was_prepared_before_the_log_is_refused(bench: Bench) -> None:
    prepare(bench, "a", first=1000)
    with bench.start(THL_SOURCE__START="now") as producer:
        producer.online()
        decide(bench, "COMMIT", "a")
        assert producer.ended() == 6
    assert logged(bench, "a") in producer.text
