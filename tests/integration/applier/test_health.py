"""What probes are told of an applier whose Spark stands still: the driver's own thread may wait without end."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Apply, Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.health import ProcessHealth
from connector.spark.session import SparkRun
from tests.support.clock import PATIENCE
from tests.support.fragments import record, statement
from tests.support.log_writer import LogWriter
from tests.support.producing import until
from tests.support.servers.environment import Broker
from tests.support.spark import session

TOO_LONG = 3.0  # seconds: a machine that is busy with other things needs as long now and then, so it is waited for


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    with session(tmp_path_factory.mktemp("spark")) as started:
        yield started


def test_applier_whose_jvm_is_stopped_is_stuck_and_alive_again_when_it_goes_on(
    kafka_broker: Broker, tmp_path: Path, spark: SparkRun
) -> None:
    config = Config(
        service=f"s{uuid.uuid4().hex[:10]}",
        kafka=Kafka(bootstrap=kafka_broker.bootstrap),
        apply=Apply(checkpoint_dir=tmp_path / "spark"),
        target=Target(url=SecretStr(f"sqlite:///{tmp_path / 'target.db'}")),
    )
    log = LogWriter(config)
    log.online()
    log.events([record(0, [statement("CREATE TABLE orders (id INT PRIMARY KEY)")], kind="ddl", shard="#UNKNOWN")])
    stop, clock = Event(), SystemClock()
    health = ProcessHealth(clock, bound=TOO_LONG)
    jvm: Any = spark.jvm
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    thread = Thread(target=Applier(config, spark, clock, stop, health=health).run)
    thread.start()
    try:
        until(lambda: health.ready() == (True, "applying"))
        os.kill(process, signal.SIGSTOP)
        try:
            until(lambda: not health.alive().ok)
            assert health.ready().text.startswith("reading by Spark has not gone on for")
        finally:
            os.kill(process, signal.SIGCONT)
        until(lambda: health.ready() == (True, "applying"))
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert health.ready() == (False, "not applying")
