"""One shard per table: equal targets for any number of partitions, reading single shards, and a changed rule."""

from __future__ import annotations

import random
import sqlite3
import uuid
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.loading import load
from connector.config.model import Config
from connector.config.publish import Publish
from connector.config.source import Source as SourceConfig
from connector.consume import Consumer, ConsumerPosition, Start
from connector.errors import LogDamaged, ShardsChanged
from connector.kafka.log_reader import LogReader
from connector.log.format.shard_rule import BY_TABLE, ShardRule
from connector.log.gtid.source_gtids import lacking
from connector.log.ids import Seqno
from connector.log.transaction.position import PositionRecord
from connector.log.writing.tail import REPARTITIONED
from connector.producer.producer import Producer
from connector.producer.sources.mysql import MySqlSource
from connector.verify import verify
from tests.contract.test_publish_topics import config_of
from tests.support.producing import Bench, finished, fragments, until
from tests.support.scripted import ScriptedSource, ScriptedStream, transaction
from tests.support.servers.environment import Broker, SqlServer
from tests.support.spark import session


def workload(schemas: list[str], chance: random.Random, transactions: int) -> str:
    """SQL: tables, then transactions over one or two of them, some DDL between."""
    tables = [f"{schema}.t{number}" for schema in schemas for number in range(4)]
    lines = [f"CREATE DATABASE {schema};" for schema in schemas]
    lines += [f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(50), n INT);" for table in tables]
    for number in range(transactions):
        if chance.random() < 0.03:
            lines.append(f"ALTER TABLE {chance.choice(tables)} ADD COLUMN c{number} INT DEFAULT {number};")
            continue
        lines.append("BEGIN;")
        touched = chance.sample(tables, 1 if chance.random() < 0.8 else 2)
        for table in touched * chance.randint(1, 3):
            key = chance.randrange(30)
            lines.append(
                chance.choice(
                    [
                        f"REPLACE INTO {table} (id, v, n) VALUES ({key}, 'v{number}', 0), ({key + 1}, 'w', {number});",
                        f"UPDATE {table} SET v = 'u{number}', n = n + 1 WHERE id BETWEEN {key} AND {key + 3};",
                        f"DELETE FROM {table} WHERE id = {key};",
                    ]
                )
            )
        lines.append(chance.choice(["COMMIT;", "COMMIT;", "COMMIT;", "ROLLBACK;"]))
    return "\n".join(lines)


def publish(config: Config, executed: str) -> None:
    """Everything that the source has."""
    stop, failed = Event(), list[BaseException]()

    def run() -> None:
        try:
            Producer(config, MySqlSource(config, SystemClock()), SystemClock(), stop).run()
        except BaseException as error:
            failed.append(error)
            raise

    def done() -> bool:
        assert not failed
        with LogReader(config) as log:
            position = log.position() if log.partitions(config.position_topic) else None
        return position is not None and not lacking(executed, position.gtid_set or "")

    thread = Thread(target=run)
    thread.start()
    try:
        until(done)
    finally:
        stop.set()
        thread.join()


def contents(target: Path) -> dict[str, list[Any]]:
    with sqlite3.connect(target) as db:
        names = db.execute("SELECT target_name FROM thl_tables").fetchall()
        return {name: sorted(db.execute(f'SELECT * FROM "{name}"'), key=repr) for (name,) in names}


def test_one_partition_or_eight_give_the_same_target(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    schemas = [f"x{uuid.uuid4().hex[:6]}" for _ in range(3)]
    mysql_server.run_sql(workload(schemas, random.Random(7), 120))
    executed = mysql_server.run_sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1].replace("\\n", "")
    configs = {}
    for partitions in (1, 8):
        settings = {
            "THL_SOURCE__FILTERS__DO": ",".join(schemas),
            "THL_SOURCE__START": "earliest",
            "THL_KAFKA__PARTITIONS": str(partitions),
            "THL_PUBLISH__SHARD_BY": "table",
            "THL_TARGET__URL": f"sqlite:///{tmp_path}/{partitions}.db",
            "THL_APPLY__CHECKPOINT_DIR": str(tmp_path / "spark"),
        }
        bench = Bench(mysql_server, kafka_broker, tmp_path, settings=settings)
        configs[partitions] = load(None, bench.environment)
        publish(configs[partitions], executed)
    events = {number: [e[0] for e in finished(fragments(configs[8], number))] for number in range(8)}
    assert sum(bool(found) for found in events.values()) > 2
    count = sum(map(len, events.values()))
    assert count == len(finished(fragments(configs[1])))

    with session(tmp_path / "session") as spark:
        for config in configs.values():
            position = Applier(config, spark, SystemClock(), Event(), until=Seqno(count - 1)).run()
            assert position is not None
            assert position.seqno == count - 1
    assert contents(tmp_path / "1.db") == contents(tmp_path / "8.db")
    assert verify(configs[8]).equal

    shard = f"{schemas[1]}.t2"
    wanted = sorted(e["seqno"] for found in events.values() for e in found if e["shard"] in (shard, "#UNKNOWN"))
    own = [e["seqno"] for found in events.values() for e in found if e["shard"] == shard]
    assert own
    with Consumer(kafka_broker.bootstrap, configs[8].service, shards=[shard], until_end=True) as reading:
        given = [(event.seqno, str(event.shard)) for event in reading]
    assert [seqno for seqno, _ in given] == wanted  # of one shard and the barriers alone there is one order
    assert [seqno for seqno, name in given if name == shard] == sorted(own)


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    basis = config_of(kafka_broker, partitions=2)
    return basis.model_copy(update={"source": SourceConfig(restarts_in_event=3)})


def ruled(config: Config, **publish_: Any) -> Config:
    return config.model_copy(update={"publish": Publish.model_validate(publish_)})


def produce(config: Config, source: ScriptedSource) -> PositionRecord:
    source.stop.clear()
    position = Producer(config, source, SystemClock(), source.stop).run()
    assert position is not None
    return position


def consumer(config: Config, **options: Any) -> Consumer:
    return Consumer(config.kafka.bootstrap, config.service, until_end=True, **options)


def test_reader_of_shards_gets_the_event_where_another_rule_begins(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(number) for number in range(1, 4)])
    produce(config, source)
    produce(config, source)  # the same rule: no other version
    with consumer(config, shards=["a"], group="g" + config.service) as reading:
        last = [event.position for event in reading][-1]
        reading.commit()
    source.transactions += [transaction(number) for number in range(4, 7)]
    produce(ruled(config, shard_by="table"), source)
    with LogReader(config) as log:
        found = log.control().partitions
    assert found is not None
    assert (found.version, found.rule, found.since) == (2, ShardRule(BY_TABLE), 3)
    with consumer(config) as reading:
        assert [(e.seqno, str(e.shard)) for e in reading] == [
            (0, "a"), (1, "a"), (2, "a"), (3, "#UNKNOWN"), (4, "a.t"), (5, "a.t"),
        ]  # fmt: skip
    given: list[int] = []
    with consumer(config, shards=["a"]) as reading, pytest.raises(ShardsChanged) as told:
        for event in reading:
            given.append(event.seqno)
    assert given == [0, 1, 2]
    assert told.value.where["seqno"] == 3
    proved = ConsumerPosition.from_json(last.to_json())
    later: list[dict[str, Any]] = [{"start": proved}, {"group": "g" + config.service}]
    for begin in later:  # it had read all there was, by the older rule
        with consumer(config, shards=["a"], **begin) as reading, pytest.raises(ShardsChanged):
            assert list(reading) == []
    with consumer(config, shards=["a.t"], start=Start.seqno(3)) as reading:
        assert [event.seqno for event in reading] == [3, 4, 5]


def add_partitions(config: Config, total: int) -> None:
    admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    admin.create_partitions([NewPartitions(config.topic, total)])[config.topic].result(30)
    until(lambda: len(admin.list_topics(config.topic, timeout=10).topics[config.topic].partitions) == total)


def refused(config: Config, source: ScriptedSource) -> None:
    """Neither a producer nor a consumer begins, and nothing is written."""
    with LogReader(config) as log:
        before = log.position(), log.control()
    with pytest.raises(LogDamaged) as repartitioned:
        produce(config, source)
    assert repartitioned.value.hint == REPARTITIONED
    for shards in (None, ["a"]):
        with pytest.raises(LogDamaged) as repartitioned, consumer(config, shards=shards):
            pass
        assert repartitioned.value.hint == REPARTITIONED
    with LogReader(config) as log:
        assert (log.position(), log.control()) == before


def test_added_partitions_are_refused(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(number) for number in range(1, 4)])
    produce(config, source)
    add_partitions(config, 3)
    refused(config, source)


def test_partitions_added_while_running_are_harmless_and_refused_at_the_next_start(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2)])
    produce(config, source)
    source.transactions += [transaction(number) for number in range(3, 7)]
    read, grown = ScriptedStream.read, list[int]()

    def growing(stream: ScriptedStream, timeout: float) -> Any:
        if stream.rest and stream.rest[0][0] == 4 and not grown:
            add_partitions(config, 3)
            grown.append(3)
        return read(stream, timeout)

    monkeypatch.setattr(ScriptedStream, "read", growing)
    with Consumer(config.kafka.bootstrap, config.service) as live:
        assert [seqno_of(live) for _ in range(2)] == [0, 1]
        produce(config, source)
        assert grown
        assert [seqno_of(live) for _ in range(4)] == [2, 3, 4, 5]
    assert [event[0]["seqno"] for number in range(2) for event in finished(fragments(config, number))] == [*range(6)]
    assert fragments(config, 2) == []
    source.transactions.append(transaction(7))
    refused(config, source)


def seqno_of(live: Consumer) -> int | None:
    event = live.poll(60)
    return None if event is None else event.seqno
