"""docs/runbooks.md, "Kafka is lost" and "Fill a target again": topics that are gone, a new log, an emptied target."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from tests.support.apply_process import REPOSITORY, THL
from tests.support.clock import PATIENCE
from tests.support.producing import Bench, last_seqno
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer

pytestmark = [pytest.mark.servers, pytest.mark.long]


@pytest.fixture
def bench(
    mysql_server: SqlServer, kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> Iterator[Bench]:
    made = Bench(mysql_server, kafka_broker, tmp_path)
    made.make_table()
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {made.service} ENCODING 'UTF8' TEMPLATE template0".encode())
        server = postgres_server
        url = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}/{made.service}"
        made.settings |= {"THL_TARGET__URL": url, "THL_KAFKA__RETRIES": "3", "THL_APPLY__HEAP": "512m"}
        yield made
        admin.execute(f"DROP DATABASE {made.service} WITH (FORCE)".encode())


def thl(bench: Bench, *words: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **bench.environment}
    done = subprocess.run(
        [THL, *words],
        cwd=bench.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def applies_all(bench: Bench) -> tuple[int, str]:
    return thl(bench, "apply", "--to-seqno", str(last_seqno(bench)))


def rows_on_target(bench: Bench, schema: str) -> list[tuple[int, str]]:
    with psycopg.connect(bench.environment["THL_TARGET__URL"]) as reader:
        return [(row[0], row[1]) for row in reader.execute(f"SELECT id, v FROM {schema}.t ORDER BY id".encode())]


def test_a_lost_log_is_begun_again_under_another_name_and_the_target_filled_again(bench: Bench) -> None:
    schema = bench.service
    with bench.start() as running:
        running.online()
        running.loaded()
        assert applies_all(bench)[0] == 0
    assert rows_on_target(bench, schema) == bench.rows()

    admin = AdminClient({"bootstrap.servers": bench.kafka.bootstrap})
    topics = list(admin.list_topics(timeout=10).topics)
    mine = [topic for topic in topics if topic == bench.config.topic or topic.startswith(f"{bench.config.topic}.")]
    assert len(mine) == 4
    for deleted in admin.delete_topics(mine).values():
        deleted.result(30)
    code, said = thl(bench, "apply")
    assert (code, "the log that the target follows does not exist: the brokers have no such topics" in said) == (
        8,
        True,
    )

    # Another name; the tables are still those of this schema.
    do = bench.environment["THL_SOURCE__FILTERS__DO"]
    bench.settings |= {"THL_SERVICE": f"{schema}2", "THL_SOURCE__FILTERS__DO": do}
    bench.sql(f"INSERT INTO {schema}.t (v) VALUES ('after the loss')")
    with bench.start() as running:
        running.online()
        running.loaded()
        code, said = applies_all(bench)
        assert code != 0, said  # the tables are another service's
        with psycopg.connect(bench.environment["THL_TARGET__URL"], autocommit=True) as target:
            target.execute(f"DROP SCHEMA {schema} CASCADE".encode())
            target.execute("DROP SCHEMA thl CASCADE")
        assert applies_all(bench)[0] == 0
    assert rows_on_target(bench, schema) == bench.rows()
