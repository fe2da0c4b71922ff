"""The code blocks of docs/spark.md run, in their order, on a real log; those of docs/consuming.md: test_consume.py."""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.kafka.records import definition_messages
from connector.log.transaction.definition import Definitions, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from spark_apps.rows import rows
from tests.support.fragments import change, record
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker
from tests.support.spark import end_jvm

ROOT = Path(__file__).parents[2]
LAST = 44  # the pages read up to event 41
ORDERS = TableLayout(TableName("shop", "orders"), (Column("id", "int"), Column("v", "varchar(100)")), (0,))


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    """A session that the page's `getOrCreate` finds."""
    end_jvm()  # of an applier's session, whose settings are for an applier
    settings = {
        "spark.master": "local[2]", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "512m", "spark.local.dir": str(tmp_path),
        "spark.sql.warehouse.dir": str(tmp_path),
    }  # fmt: skip
    session = SparkSession.builder.config(map=settings).getOrCreate()
    yield session
    session.stop()
    end_jvm()


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    """The service of a log with inserts into shop.orders."""
    chosen = Config(service=f"s{uuid.uuid4().hex[:10]}", kafka=Kafka(bootstrap=kafka_broker.bootstrap))
    log = LogWriter(chosen)
    log.online()
    inserts = [change("insert", [(None, [seqno, "x"])]) for seqno in range(LAST + 1)]
    log.events([record(seqno, [one], prev_seqno=seqno - 1) for seqno, one in enumerate(inserts)])
    producer = Producer({"bootstrap.servers": chosen.kafka.bootstrap})
    for key, value in definition_messages(Definitions({ORDERS.name: TableDefinition(ORDERS, "utf8mb4")})):
        producer.produce(chosen.control_topic, value, key)
    producer.flush()
    return chosen


@pytest.mark.servers
def test_python_blocks_of_the_spark_page_run_in_their_order(
    spark: SparkSession, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("thl.yaml").write_text(json.dumps({"service": config.service, "kafka": {"bootstrap": config.kafka.bootstrap}}))
    names: dict[str, Any] = {}
    by_call, by_format, typed = blocks("python")

    exec(by_call, names)  # noqa: S102 (the page's own)
    assert names["spark"] is spark
    assert names["changes"].count() == 42
    assert names["stream"].isStreaming

    for said, here in (('"shop"', f'"{config.service}"'), ('"kafka:9092"', f'"{config.kafka.bootstrap}"')):
        assert said in by_format
        by_format = by_format.replace(said, here)
    exec(by_format, names)  # noqa: S102
    assert names["changes"].count() == LAST + 1

    exec(typed, names)  # noqa: S102
    found = names["orders"].select("after.id").orderBy("id").collect()
    assert [row["id"] for row in found] == list(range(LAST + 1))


def test_json_blocks_of_the_spark_page_are_json() -> None:
    (connector,) = blocks("json")
    assert json.loads(connector)["consumer.override.isolation.level"] == "read_committed"


def test_commands_of_the_spark_page_name_an_application_and_its_options() -> None:
    (command,) = blocks("sh")
    program, application, *arguments = shlex.split(command)
    assert program == "spark-submit"
    assert (ROOT / application).is_file()
    assert application == f"spark_apps/{rows.name}.py"
    assert rows.make_context("rows", arguments).params["prefix"] == "shop"
