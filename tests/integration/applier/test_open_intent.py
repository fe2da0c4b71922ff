"""A commit of several writers that an applier has made in part: what is finished first, and what is refused."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.applier.finish_intent import finish_intent
from connector.applier.skips import ExcludedTables, Skips
from connector.applier.undo import undo
from connector.clock import SystemClock
from connector.config.apply import Apply, Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import ConfigError, HistoriesDiffer
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.spark.session import SparkRun
from connector.status import collect as collect_module
from connector.status.collect import collect
from connector.status.report import NO_APPLIER, End, LagLimits, ServiceState, as_object, as_text
from connector.targets.open import open_signal_table, open_target
from connector.targets.postgres import divided_commit
from tests.contract.test_target_postgres_writers import Crash, Crashes, crashes
from tests.support.fragments import change, record, statement
from tests.support.log_writer import LogWriter
from tests.support.problems import texts
from tests.support.servers.environment import Broker, DatabaseServer

__all__ = ["crashes"]

CREATES = ("CREATE DATABASE shop", "CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, v INT)")
FIRST, LAST = 11, 20  # of the open commit
ROWS = 8  # of an event
WRITERS = 3


@pytest.fixture
def config(
    kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Config]:
    monkeypatch.setattr(divided_commit, "DIVIDED_ROWS", 1)
    server = postgres_server
    base = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}"
    name = f"o{uuid.uuid4().hex[:10]}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
        yield Config(
            service=name,
            kafka=Kafka(bootstrap=kafka_broker.bootstrap, retries=5),
            apply=Apply(checkpoint_dir=tmp_path / "spark", batch_messages=500, continuous=False),
            target=Target(
                url=SecretStr(f"{base}/{name}"), audit=True, retries=5, writers=WRITERS, snapshot_interval=0.0
            ),
        )
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def rows(seqno: int) -> dict[str, Any]:
    """Insert some rows, and change those of the event before."""
    inserted = [(None, [seqno * 100 + number, seqno]) for number in range(ROWS)]
    before = [([(seqno - 1) * 100 + number, seqno - 1], [(seqno - 1) * 100 + number, seqno]) for number in range(ROWS)]
    changes = [change("insert", inserted), *([change("update", before)] if seqno > 1 else [])]
    return record(seqno, changes, last_barrier=0)


def expected(seqno: int) -> list[tuple[int, int]]:
    return [(n * 100 + number, min(n + 1, seqno)) for n in range(1, seqno + 1) for number in range(ROWS)]


def apply(config: Config, spark: SparkRun, until: int, **options: Any) -> TargetPosition | None:
    return Applier(config, spark, SystemClock(), Event(), until=Seqno(until), **options).run()


@pytest.fixture
def half(config: Config, spark: SparkRun, crashes: Crashes) -> LogWriter:
    """A log of 25 events, and a target of which one of three writers has committed 11 to 20."""
    log = LogWriter(config)
    log.online()
    log.events([record(0, [statement(sql) for sql in CREATES], kind="ddl", shard="#UNKNOWN")])
    log.events([rows(seqno) for seqno in range(1, 26)])
    apply(config, spark, FIRST - 1)
    assert found(config) == expected(FIRST - 1)
    crashes.before = {0, 2}
    with pytest.raises(Crash):
        apply(config, spark, LAST)
    crashes.before = set()
    assert found(config) not in (expected(FIRST - 1), expected(LAST))
    return log


@pytest.mark.long
def test_it_is_finished_by_smaller_batches_though_its_rows_lack_columns_and_get_other_keys(
    config: Config, spark: SparkRun, crashes: Crashes
) -> None:
    """In a segment that ends between both updates a row would only be moved: its table was divided."""
    minimal: Any = {"before_present": b"\1", "after_present": b"\1"}
    changed = {
        3: change("update", [([200 + n], [7]) for n in range(ROWS)], before_present=b"\1", after_present=b"\2"),
        5: change("update", [([400 + n], [9400 + n]) for n in range(ROWS)], **minimal),
    }
    log = LogWriter(config)
    log.online()
    log.events([record(0, [statement(sql) for sql in CREATES], kind="ddl", shard="#UNKNOWN")])
    inserted = [change("insert", [(None, [n * 100 + row, n]) for row in range(ROWS)]) for n in range(31)]
    log.events([record(n, [changed.get(n, inserted[n])], last_barrier=0) for n in range(1, 31)])
    apply(config, spark, 1)
    crashes.before = {0, 2}
    with pytest.raises(Crash):
        apply(config, spark, 30)
    crashes.before = set()
    smaller = config.apply.model_copy(update={"batch_messages": 6, "batch_bytes": 1})
    end = apply(config.model_copy(update={"apply": smaller}), spark, 30)
    assert end is not None
    assert (end.seqno, end.consistent) == (30, True)
    assert query(config, "SELECT count(*), count(v) FROM shop.orders") == [(28 * ROWS, 28 * ROWS)]


def found(config: Config) -> list[Any]:
    return query(config, "SELECT id, v FROM shop.orders ORDER BY 1")


def applied(config: Config) -> list[int]:
    return [seqno for (seqno,) in query(config, "SELECT seqno FROM thl.thl_applied ORDER BY 1")]


def query(config: Config, sql: str) -> list[Any]:
    with psycopg.connect(config.target.url.get_secret_value(), autocommit=True) as reader:
        cursor = reader.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def test_undo_makes_it_whole_first(config: Config, half: LogWriter) -> None:
    del half
    options = config.target.model_copy(update={"writers": 1})
    with closing(open_target(options, SystemClock())) as target, open_signal_table(options) as signals:
        position = undo(config, target, signals, Seqno(5), SystemClock())
    assert (position.seqno, position.intent, position.consistent) == (5, None, True)
    assert found(config) == expected(5)
    assert applied(config) == list(range(6))


def test_without_spark_it_is_made_whole_with_other_writers(config: Config, half: LogWriter) -> None:
    del half
    options = config.target.model_copy(update={"writers": 7})
    with closing(open_target(options, SystemClock())) as target:
        claimed = target.claim(config.service)
        # A partition of which the target has applied nothing is read from its beginning.
        position = finish_intent(config, target, replace(claimed, offsets={}), SystemClock())
        assert (position.seqno, position.intent) == (LAST, None)
        assert finish_intent(config, target, position, SystemClock()) is position
    assert found(config) == expected(LAST)


def test_rewind_makes_it_whole_first(config: Config, spark: SparkRun, half: LogWriter) -> None:
    end = apply(config, spark, half.seqno, first=Seqno(5))
    assert end is not None
    assert (end.seqno, end.consistent) == (half.seqno, True)
    assert found(config) == expected(half.seqno)
    assert applied(config) == list(range(half.seqno + 1))


def test_its_events_cannot_be_skipped_any_more(config: Config, spark: SparkRun, half: LogWriter) -> None:
    with pytest.raises(ConfigError) as refused:
        apply(config, spark, half.seqno, skips=Skips([Seqno(FIRST + 1)], "me@here", "why"))
    assert f"event {FIRST + 1} is applied already" in refused.value.message
    assert found(config) == expected(LAST)
    apply(config, spark, half.seqno - 1, skips=Skips([Seqno(half.seqno)], "me@here", "why"))
    assert found(config) == expected(half.seqno - 1)


def test_a_table_is_excluded_after_it(config: Config, spark: SparkRun, half: LogWriter) -> None:
    excluded = ExcludedTables([TableName("shop", "orders")], "me@here", "why")
    apply(config, spark, half.seqno, excluded=excluded)
    assert found(config) == expected(LAST)
    assert query(config, "SELECT since_seqno FROM thl.thl_excluded") == [(LAST + 1,)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [("epoch = 7", "Log epoch numbers do not match"), ("last_seqno = 99", "The target is ahead of the log")],
)
def test_its_last_event_has_to_be_in_the_log(
    config: Config, spark: SparkRun, half: LogWriter, changed: str, message: str
) -> None:
    """The target's position alone is in the log: what a writer has committed counts."""
    query(config, f"UPDATE thl.thl_intent SET {changed}")
    query(config, "UPDATE thl.thl_channels SET seqno = 99 WHERE channel = 1 AND EXISTS "
          "(SELECT FROM thl.thl_intent WHERE last_seqno = 99)")  # fmt: skip
    before = found(config)
    with pytest.raises(HistoriesDiffer) as refused:
        apply(config, spark, half.seqno)
    assert message in refused.value.message
    assert found(config) == before


def test_status_shows_it_and_the_remedy(config: Config, spark: SparkRun, half: LogWriter) -> None:
    status = collect(config, LagLimits(), ends=frozenset({End.TARGET}))
    shown = json.loads(json.dumps(as_object(status)))["applier"]
    assert shown["consistent"] is False
    assert shown["inconsistentBecause"] == ["channels"]
    assert shown["channels"] == [FIRST - 1, LAST, FIRST - 1]
    assert shown["openIntent"] == {
        "firstSeqno": FIRST, "lastSeqno": LAST, "epoch": 1, "writers": WRITERS, "committed": [1]
    }  # fmt: skip
    assert f"events {FIRST}..{LAST} by 3 writers, committed: 1" in as_text(status)
    assert status.applier.state is ServiceState.OFFLINE  # not an initial load
    (problem,) = [one for one in status.problems if "several writers" in one.text]
    assert problem.remedy == "thl apply finishes it"
    apply(config, spark, half.seqno)
    shown = as_object(collect(config, LagLimits(), ends=frozenset({End.TARGET})))
    assert shown["problems"] == [NO_APPLIER]
    assert shown["applier"]["inconsistentBecause"] == ()  # type: ignore[index]


def test_status_of_writers_at_work_is_no_problem(
    config: Config, spark: SparkRun, half: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit that was open has ended when status looks again."""

    class Meanwhile(SystemClock):
        def sleep(self, seconds: float) -> None:
            assert seconds == collect_module.FINISH_SECONDS
            apply(config, spark, half.seqno)

    status = collect(config, LagLimits(), Meanwhile(), ends=frozenset({End.TARGET}))
    assert (texts(status.problems), status.applier.open_intent) == ([NO_APPLIER], None)
    assert (status.applier.state, status.applier.applied_last_seqno) == (ServiceState.OFFLINE, half.seqno)


def test_status_names_what_its_account_may_not_read(config: Config, half: LogWriter) -> None:
    del half
    query(config, "DROP ROLE IF EXISTS thl_status; CREATE ROLE thl_status LOGIN PASSWORD 'x'; "
          "GRANT USAGE ON SCHEMA thl TO thl_status; GRANT SELECT ON ALL TABLES IN SCHEMA thl TO thl_status; "
          "REVOKE SELECT ON thl.thl_intent FROM thl_status")  # fmt: skip
    try:
        url = psycopg.conninfo.conninfo_to_dict(config.target.url.get_secret_value())
        plain = SecretStr(f"postgresql://thl_status:x@{url['host']}:{url['port']}/{url['dbname']}")
        told = config.model_copy(update={"target": config.target.model_copy(update={"url": plain})})
        status = collect(told, LagLimits(), ends=frozenset({End.TARGET}))
        unreadable = [one.remedy for one in status.problems if "may not read thl.thl_intent" in one.text]
        assert [remedy.startswith("GRANT SELECT") for remedy in unreadable] == [True]
        assert status.applier.applied_last_seqno == FIRST - 1
    finally:
        query(config, "DROP OWNED BY thl_status; DROP ROLE thl_status")
