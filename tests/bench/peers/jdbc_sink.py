"""Debezium's JDBC sink on Kafka Connect, from the topic that Debezium's connector filled into PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from connector.sandbox.settings import POSTGRES_DATABASE
from tests.bench.meter import Meter
from tests.bench.peers.connect import Connect
from tests.bench.peers.debezium import PLAIN, topic_name
from tests.bench.peers.peer import Load
from tests.bench.peers.topic import Topic
from tests.bench.peers.watch import watch
from tests.bench.result import Row
from tests.bench.site import Site
from tests.bench.workload import SCHEMA

BATCH = "2000"
LIMIT = 45.0  # seconds: what it did until then is its rate, and only a whole table is compared with the source's
_STATISTICS = "SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE relname = %s"
SUMS = "SELECT count(*), sum(id), sum(a), sum(b), count(e) FROM {}"


@dataclass(frozen=True, slots=True)
class Written:
    """The database that the sink writes: its JDBC URL, its user."""

    url: str
    user: str
    password: str


def postgres(place: Site) -> Written:
    """PostgreSQL of a site."""
    server = place.postgres
    url = f"jdbc:postgresql://{server.host}:{server.port}/{POSTGRES_DATABASE}?reWriteBatchedInserts=true"
    return Written(url, server.user, server.password)


def sink(written: Written, topic: str, table: str, **more: str) -> dict[str, str]:
    """The connector's configuration: a keyed copy of the source's table, made by the sink."""
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": "1",
        "topics": topic,
        "connection.url": written.url,
        "connection.username": written.user,
        "connection.password": written.password,
        "collection.name.format": table,
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        "batch.size": BATCH,
        "consumer.override.max.poll.records": BATCH,
        **more,
    }


@dataclass(frozen=True, slots=True)
class JdbcSink:
    """Measures the sink alone, after the topic is full.

    Args:
        reduce: whether a batch's changes of one key are reduced to the last one.
    """

    reduce: bool

    def __call__(self, load: Load) -> list[Row]:
        """Measure: progress is what PostgreSQL counts (once a second), the end is read from the table."""
        place = load.place
        name = f"sink{'_reduced' if self.reduce else ''}"
        table = f"{name}_{load.kind}"
        more = {"use.reduction.buffer": "true"} if self.reduce else {}
        topic = Topic(place.kafka.bootstrap, topic_name(PLAIN, load.kind))
        full = topic.messages()
        topic.close()
        if not full:
            return [Row(self._case(load), {}, "skipped: the topic was not filled")]
        with (
            psycopg.connect(place.postgres.dsn, autocommit=True) as connection,
            Connect(place, f"{name}-{load.kind}") as worker,
        ):
            worker.create(table, sink(postgres(place), topic.name, table, **more))
            progress = _Progress(connection, table, load)
            course = watch(
                place,
                {"Connect": Meter(worker.pid)},
                progress.rows,
                load.backlog.rows,
                lambda: worker.check(table),
                limit=LIMIT,
            )
            whole = course.looks[-1].rows == load.backlog.rows
            wrong = _differs(load, connection, table) if whole else ""
        return [Row(self._case(load), course.figures(), wrong)]

    def _case(self, load: Load) -> str:
        return f"Kafka to PostgreSQL, {load.kind}: Debezium's JDBC sink{', reduced' if self.reduce else ''}"


class _Progress:
    """The approximate number of rows, counted without disturbing the sink."""

    def __init__(self, connection: psycopg.Connection, table: str, load: Load) -> None:
        self._connection = connection
        self._table = table
        self._load = load

    def rows(self) -> int:
        try:
            keys = [[key] for key in self._load.last_ids]
            there = [
                self._connection.execute(f"SELECT 1 FROM {self._table} WHERE id = %s".encode(), key).fetchone()
                for key in keys
            ]
        except psycopg.errors.UndefinedTable:
            return 0
        if all(there):
            return self._load.backlog.rows
        found = self._connection.execute(_STATISTICS.encode(), [self._table]).fetchone()
        # reduced changes are fewer than those of the log, and upserts of one row may be counted twice
        return min(int(found[0]), self._load.backlog.rows - 1) if found else 0


def _differs(load: Load, connection: psycopg.Connection, table: str) -> str:
    """Compares checksums of the source's and the target's table; the last batch may still be in flight."""
    place = load.place
    with place.connect() as source, source.cursor() as cursor:
        cursor.execute(SUMS.format(f"{SCHEMA}.{load.kind}"))
        expected = [int(value) for value in cursor.fetchall()[0]]
    for _ in range(50):
        found = connection.execute(SUMS.format(table).encode()).fetchone()
        if found and [int(value) for value in found] == expected:
            return ""
        connection.execute("SELECT pg_sleep(0.1)")
    return f"the target's sums are {found}, the source's {expected}"
