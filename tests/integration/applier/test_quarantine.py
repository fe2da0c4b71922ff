"""`target.on_error: quarantine` with real Kafka, Spark and PostgreSQL: the target refuses one of three tables."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Apply, Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import TargetDiffers
from connector.log.ids import Seqno
from connector.log.transaction.position import TargetPosition
from connector.spark.session import SparkRun
from connector.status.collect import collect
from connector.status.report import End, LagLimits, ServiceState, as_object
from connector.targets.postgres import divided_commit
from tests.support.fragments import change, record, statement
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker, DatabaseServer
from tests.support.spark import session

TABLES = ("one", "two", "three")
EVENTS = 900
BAD = 500  # the event that updates a row of `two` that the target lacks


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    with session(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(params=[1, 3], ids=["one writer", "three writers"])
def config(
    request: pytest.FixtureRequest,
    kafka_broker: Broker,
    postgres_server: DatabaseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Config]:
    monkeypatch.setattr(divided_commit, "DIVIDED_ROWS", 1)
    server = postgres_server
    base = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}"
    name = f"q{uuid.uuid4().hex[:10]}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
        yield Config(
            service=name,
            kafka=Kafka(bootstrap=kafka_broker.bootstrap, retries=5),
            apply=Apply(checkpoint_dir=tmp_path / "spark", batch_messages=400, continuous=False),
            target=Target(
                url=SecretStr(f"{base}/{name}"),
                audit=True,
                retries=5,
                writers=request.param,
                snapshot_interval=0.0,
                on_error="quarantine",
            ),
        )
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def changes(seqno: int) -> list[dict[str, Any]]:
    """Insert a row into each table, and change the one before."""
    found = [change("insert", [(None, [seqno, 0])], table=table) for table in TABLES]
    if seqno > 1:
        found += [change("update", [([seqno - 1, 0], [seqno - 1, seqno])], table=table) for table in TABLES]
    if seqno == BAD:
        found.append(change("update", [([7_000_000, 0], [7_000_000, 1])], table="two"))
    return found


def expected(seqno: int) -> list[tuple[int, int]]:
    return [(n, n + 1 if n < seqno else 0) for n in range(1, seqno + 1)]


def apply(config: Config, spark: SparkRun, until: int) -> TargetPosition | None:
    return Applier(config, spark, SystemClock(), Event(), until=Seqno(until)).run()


def query(config: Config, sql: str) -> list[Any]:
    with psycopg.connect(config.target.url.get_secret_value(), autocommit=True) as reader:
        return reader.execute(sql.encode()).fetchall()


def test_refused_table_is_quarantined_and_the_others_are_equal(config: Config, spark: SparkRun) -> None:
    creates = ["CREATE DATABASE shop", *(f"CREATE TABLE {one} (id INT PRIMARY KEY, v INT)" for one in TABLES)]
    log = LogWriter(config)
    log.online()
    log.events([record(0, [statement(sql) for sql in creates], kind="ddl", shard="#UNKNOWN")])
    log.events([record(seqno, changes(seqno), last_barrier=0) for seqno in range(1, EVENTS + 1)])
    with pytest.raises(TargetDiffers):
        stops = config.model_copy(update={"target": config.target.model_copy(update={"on_error": "stop"})})
        apply(stops, spark, EVENTS)
    apply(config, spark, EVENTS - 100)
    apply(config, spark, EVENTS)  # another applier leaves the table out, too
    found = {one: query(config, f"SELECT id, v FROM shop.{one} ORDER BY 1") for one in TABLES}
    assert found == {"one": expected(EVENTS), "two": expected(BAD - 1), "three": expected(EVENTS)}
    ((name, since, by, because, count),) = query(
        config, "SELECT table_name, since_seqno, excluded_by, because, changes FROM thl.thl_excluded"
    )
    assert (name, since, by) == ("two", BAD, "thl apply")
    assert because.startswith("quarantined: ")
    assert f"seqno={BAD}" in because
    assert count == 2 * (EVENTS - BAD + 1) + 1
    assert [seqno for (seqno,) in query(config, "SELECT seqno FROM thl.thl_applied ORDER BY 1")] == [*range(EVENTS + 1)]
    status = collect(config, LagLimits(), ends=frozenset({End.TARGET}))
    shown: Any = as_object(status)["applier"]
    assert shown["inconsistentBecause"] == ("quarantine",)
    assert status.applier.state is ServiceState.ONLINE
    assert any(f"not applied: shop.two since {BAD}, {count} row changes" in one for one in status.problems)
