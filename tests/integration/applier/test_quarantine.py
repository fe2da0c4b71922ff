"""`target.on_error: quarantine` with real Kafka, Spark and PostgreSQL: the target refuses one of three tables."""

from __future__ import annotations

from threading import Event
from typing import Any

import psycopg
import pytest

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import TargetDiffers
from connector.kafka.requests import send_request
from connector.log.epochs.loads import LoadRequest
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import Part
from connector.log.transaction.position import TargetPosition
from connector.spark.session import SparkRun
from connector.status.collect import collect
from connector.status.report import End, LagLimits, ServiceState, as_object
from tests.support.fragments import change, load_record, record, statement
from tests.support.log_writer import LogWriter
from tests.support.problems import texts

TABLES = ("one", "two", "three")
EVENTS = 900
BATCH_MESSAGES = 400
BAD = 500  # the event that updates a row of `two` that the target lacks


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
    public, values = because.split("\n")
    assert f"seqno={BAD}" in public
    assert f"seqno={BAD}" in values
    assert "7000000" not in public  # the key of the row
    assert "7000000" in values
    assert count == 2 * (EVENTS - BAD + 1) + 1
    assert [seqno for (seqno,) in query(config, "SELECT seqno FROM thl.thl_applied ORDER BY 1")] == [*range(EVENTS + 1)]
    status = collect(config, LagLimits(), ends=frozenset({End.TARGET}))
    shown: Any = as_object(status)["applier"]
    assert shown["inconsistentBecause"] == ("quarantine",)
    assert status.applier.state is ServiceState.OFFLINE  # and not loading
    assert any(f"not applied: shop.two since {BAD}, {count} row changes" in one for one in texts(status.problems))


def test_stopped_applier_quarantines_a_table_that_is_loaded_later(config: Config, spark: SparkRun) -> None:
    stops = config.model_copy(update={"target": config.target.model_copy(update={"on_error": "stop"})})
    create = "CREATE TABLE {} (id INT PRIMARY KEY, v INT)"
    log = LogWriter(config)
    log.online()
    creates = ["CREATE DATABASE shop", *(create.format(one) for one in TABLES)]
    log.events([record(0, [statement(sql) for sql in creates], kind="ddl", shard="#UNKNOWN")])
    log.events([record(seqno, changes(seqno), last_barrier=0) for seqno in range(1, BAD + 100)])
    other = LoadRequest(table=TableName("shop", "one"), load="l0", asked_at=1, asked_by="a@b")
    send_request(config, other)
    with pytest.raises(TargetDiffers, match=r"thl load shop\.two, then start thl apply"):
        apply(stops, spark, BAD + 99)
    assert query(config, "SELECT * FROM thl.thl_excluded") == []

    asked = LoadRequest(
        table=TableName("mine", "second"), load="l1", asked_at=2, asked_by="a@b", published=("shop", "two")
    )
    send_request(config, asked)
    apply(stops, spark, BAD + 99)
    assert query(config, "SELECT table_name, since_seqno FROM thl.thl_excluded") == [("two", BAD)]

    begin = BAD + 100
    rows = [(None, list(row)) for row in expected(BAD + 99)]
    log.events(
        [
            load_record(begin, [statement(create.format("two"))], part=Part.BEGIN, shard="#UNKNOWN", table="two"),
            load_record(begin + 1, [change("read", rows, table="two")], last_barrier=begin),
            load_record(begin + 2, [], part=Part.END, shard="#UNKNOWN", last_barrier=begin, table="two"),
        ]
    )
    apply(stops, spark, begin + 2)
    for one in TABLES:
        assert query(config, f"SELECT id, v FROM shop.{one} ORDER BY 1") == expected(BAD + 99)
    assert query(config, "SELECT * FROM thl.thl_excluded") == []
    assert [seqno for (seqno,) in query(config, "SELECT seqno FROM thl.thl_applied ORDER BY 1")] == [*range(begin + 3)]
