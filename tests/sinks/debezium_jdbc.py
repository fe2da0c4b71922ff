"""Debezium's JDBC sink on Kafka Connect, fed by rows.py: PostgreSQL's rows equal MySQL's after `kill -9`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Consumer, KafkaError, TopicPartition

from connector.kafka.log_reader import LogReader
from tests.bench.peers.connect import Connect
from tests.support.producing import Bench
from tests.support.producing import until as wait
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer

PATIENCE = 300.0
COLUMNS = (
    "id BIGINT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200), n INT UNSIGNED, big BIGINT UNSIGNED, d DECIMAL(30,10), "
    "f DOUBLE, day DATE, t DATETIME(6), z TIMESTAMP(3) NULL, b VARBINARY(20), j JSON, e ENUM('a','b'), y YEAR, o BIT(1)"
)
VALUES = (
    "concat('é-', i), i * 7, 18446744073709551615 - i, -12345678901234567890.0123456789 + i, i / 3, "
    "date '2024-02-29' + INTERVAL i DAY, timestamp '2024-02-29 23:59:59.999999' - INTERVAL i MICROSECOND, "
    "'2024-06-30 12:00:00.125', unhex(concat('00ff', lpad(hex(i), 8, '0'))), json_object('a', i), "
    "if(i % 2, 'a', 'b'), 1901 + i % 200, i % 2"
)
NAMES = "v, n, big, d, f, day, t, z, b, j, e, y, o"
# What both databases say of a row in the same words.
IN_MYSQL = (
    "SET time_zone = '+00:00'; "
    "SELECT id, v, n, big, d, format(f, 9), day, t, date_format(z, '%Y-%m-%d %H:%i:%s.%f'), hex(b), "
    "json_value(j, '$.a'), e, y, o + 0 FROM {} ORDER BY id"
)
IN_POSTGRES = (
    "SELECT id, v, n, big, d, trim(to_char(f, 'FM999,999,999,990.000000000')), day, "
    "to_char(t, 'YYYY-MM-DD HH24:MI:SS.US'), to_char(z AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), "
    "upper(encode(b, 'hex')), j::jsonb->>'a', e, y, CASE WHEN o THEN 1 ELSE 0 END FROM {} ORDER BY id"
)


@dataclass
class Place:
    """The settings of the benchmark's Connect."""

    kafka: Broker
    folder: Path


def rows_app(bench: Bench, *options: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """One run of rows.py until it ends, in any way."""
    sets = [f"service={bench.service}", f"kafka.bootstrap={bench.kafka.bootstrap}", "kafka.replication=1",
            f"apply.checkpoint_dir={bench.folder / 'spark'}"]  # fmt: skip
    command = [sys.executable, "spark_apps/rows.py", *(part for one in sets for part in ("--set", one))]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THL_")}
    root = Path(__file__).parents[2]
    where = {"PYTHONPATH": str(root), "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(
        [*command, *options], env={**kept, **where, **environ}, cwd=root, capture_output=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip


def messages(bench: Bench, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Everything committed in a topic of one partition."""
    consumer = Consumer({"bootstrap.servers": bench.kafka.bootstrap, "group.id": "look", "enable.partition.eof": True,
                         "isolation.level": "read_committed", "enable.auto.commit": False})  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    try:
        while True:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return found
            found.append((message.key(), message.value()))
    finally:
        consumer.close()


def until(what: Callable[[], Any], expected: Any, check: Callable[[], None]) -> None:
    give_up = time.monotonic() + PATIENCE
    while (found := what()) != expected:
        check()
        assert time.monotonic() < give_up, (found[:3], expected[:3], len(found), len(expected))
        time.sleep(0.5)


def test_rows_are_equal_after_kills(
    mysql_server: SqlServer, kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings={"THL_KAFKA__PARTITIONS": "2"})
    name, topic = f"{bench.service}.t", f"{bench.service}.{bench.service}.t"
    bench.sql(f"CREATE DATABASE {bench.service}; CREATE TABLE {name} ({COLUMNS})")

    def insert(count: int) -> None:
        bench.sql(
            f"SET SESSION cte_max_recursion_depth = {count + 1}; INSERT INTO {name} ({NAMES}) "
            f"WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {count}) "
            f"SELECT {VALUES} FROM s"
        )

    def change(seed: int) -> None:
        for n in range(20):
            bench.sql(
                f"BEGIN; UPDATE {name} SET v = 'changed {seed}', n = n + 1 WHERE id % 20 = {n}; "
                f"DELETE FROM {name} WHERE id % 97 = {n + seed}; COMMIT; UPDATE {name} SET id = id + 1000000 "
                f"WHERE id % 53 = {n + seed} AND id < 1000000"
            )

    insert(200)
    with bench.start().online() as producer:
        insert(500)
        killed = rows_app(bench, "--events", "2", THL_CRASH_POINT="rows.before_commit:2")
        assert killed.returncode == -9, killed.stderr.decode()[-3000:]
        change(1)
        killed = rows_app(bench, "--events", "7", THL_CRASH_POINT="rows.after_commit:3")
        assert killed.returncode == -9, killed.stderr.decode()[-3000:]
        insert(300)
        change(30)
        gtids = bench.sql("SELECT @@GLOBAL.gtid_executed").split("\n", 1)[1].strip().replace("\\n", "")
        last = int(gtids.rpartition("-")[2])
        with LogReader(bench.config) as log:

            def published() -> bool:
                record = log.position()
                assert record is not None
                return record.finished is not None and (record.finished.gtid or "").endswith(f":{last}")

            wait(published)
        assert producer.stop() == 0
    done = rows_app(bench, "--to-now")
    assert done.returncode == 0, done.stderr.decode()[-3000:]

    # Each change of the log is there once.
    told = [json.loads(value)["payload"] for _, value in messages(bench, topic) if value is not None]
    changes = [(one["source"]["sequence"], one["op"]) for one in told]
    assert len(changes) == len(set(changes))
    assert {"r", "c", "u", "d"} == {one["op"] for one in told}

    table = "copy_" + bench.service
    config = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": "1",
        "topics": topic,
        "connection.url": f"jdbc:postgresql://{postgres_server.host}:{postgres_server.port}/postgres",
        "connection.username": postgres_server.user,
        "connection.password": postgres_server.password,
        "collection.name.format": table,
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        "consumer.override.isolation.level": "read_committed",
        "consumer.override.auto.offset.reset": "earliest",
    }
    expected = [tuple(line.split("\t")) for line in bench.sql(IN_MYSQL.format(name)).splitlines()[1:]]
    assert len(expected) > 500
    with (
        Connect(Place(kafka_broker, tmp_path), "rows", {"connector.client.config.override.policy": "All"}) as worker,  # type: ignore[arg-type]
        psycopg.connect(postgres_server.dsn, autocommit=True) as target,
    ):
        worker.create("copy", config)

        def rows() -> list[tuple[str, ...]]:
            try:
                found = target.execute(IN_POSTGRES.format(table).encode()).fetchall()
            except psycopg.errors.UndefinedTable:
                return []
            return [tuple("NULL" if value is None else str(value) for value in row) for row in found]

        until(rows, expected, lambda: worker.check("copy"))
