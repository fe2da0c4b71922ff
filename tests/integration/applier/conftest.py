"""The Spark session of an applier's tests, and an applier that quarantines what PostgreSQL refuses."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from connector.config.apply import Apply, Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.spark.session import SparkRun
from connector.targets.postgres import divided_commit
from tests.support.long import long
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer
from tests.support.spark import session


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    with session(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(scope="module")
def second(servers_folder: Path) -> Iterator[SqlServer]:
    """Another MySQL than the source."""
    settings = {**MYSQL_FAST, "server_id": "3"}
    with MySqlServer(servers_folder / "second", settings=settings, die_with_parent=True) as server:
        yield server


@pytest.fixture(params=[*long(1), 3], ids=["one writer", "three writers"])
def config(
    request: pytest.FixtureRequest,
    kafka_broker: Broker,
    postgres_server: DatabaseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Config]:
    """`target.on_error: quarantine`, with batches of the module's BATCH_MESSAGES; a test may have other fixtures."""
    monkeypatch.setattr(divided_commit, "DIVIDED_ROWS", 1)
    server = postgres_server
    base = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}"
    name = f"q{uuid.uuid4().hex[:10]}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
        yield Config(
            service=name,
            kafka=Kafka(bootstrap=kafka_broker.bootstrap, retries=5),
            apply=Apply(
                checkpoint_dir=tmp_path / "spark", batch_messages=request.module.BATCH_MESSAGES, continuous=False
            ),
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
