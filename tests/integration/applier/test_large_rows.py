"""Rows of 64 MiB through topics with Kafka's default limit of 1 MiB: MySQL, producer, consumer."""

from __future__ import annotations

import hashlib
from pathlib import Path

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from connector.config.model import Config
from connector.consume import Consumer, RowChanges
from tests.support.producing import Bench
from tests.support.servers.environment import Broker, SqlServer

LIMIT = 1 << 20  # max.message.bytes, about as Kafka has it without a word
LARGE = 64 << 20
PARTITIONS = 2


def made_by_somebody(config: Config) -> None:
    admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    limit = {"max.message.bytes": str(LIMIT)}
    events = NewTopic(config.topic, PARTITIONS, 1, config=limit | {"message.timestamp.type": "LogAppendTime"})
    prepared = NewTopic(config.prepared_topic, 1, 1, config=limit | {"cleanup.policy": "compact"})
    for created in admin.create_topics([events, prepared]).values():
        created.result(30)


def body(size: int, seed: int) -> str:
    """An SQL expression of so many bytes, no KiB of which is like its neighbour."""
    return f"LEFT(REPEAT(CONCAT(SHA2('{seed}', 512), 'x'), {size // 129 + 1}), {size})"


def messages(config: Config) -> tuple[int, int]:
    """How many there are, and the size of the largest."""
    kafka = KafkaConsumer(
        {"bootstrap.servers": config.kafka.bootstrap, "group.id": "test", "enable.auto.commit": False}
    )
    count = largest = 0
    try:
        for number in range(PARTITIONS):
            place = TopicPartition(config.topic, number, 0)
            end = kafka.get_watermark_offsets(place, 30)[1]
            kafka.assign([place])
            while kafka.position([place])[0].offset < end - 1:  # Kafka's own marker is the last
                message = kafka.poll(30)
                assert message is not None
                count, largest = count + 1, max(largest, len(message.value() or b""))
    finally:
        kafka.close()
    return count, largest


def test_large_rows_are_published_in_parts_and_applied_whole(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path)
    made_by_somebody(bench.config)
    name = bench.service
    bench.make_table()
    bench.sql(
        f"USE {name}; CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(20), body LONGBLOB);"
        f"INSERT INTO big VALUES (1, 'loaded', {body(3 << 20, 1)}), (2, 'loaded', 'small')"
    )
    with bench.start() as producer:
        producer.loaded()
        bench.sql(
            f"USE {name};"
            f"INSERT INTO big VALUES (3, 'alone', {body(LARGE, 3)});"
            f"BEGIN; INSERT INTO t (v) VALUES ('before'); INSERT INTO big VALUES (4, 'among', {body(5 << 20, 4)}),"
            f" (5, 'among', 'small'), (6, 'among', {body(LIMIT, 6)}); UPDATE t SET v = concat(v, '!'); COMMIT;"
            f"UPDATE big SET v = 'twice', body = {body(9 << 20, 7)} WHERE id IN (4, 6);"
            "DELETE FROM big WHERE id = 6;"
            f"XA START 'x'; INSERT INTO big VALUES (8, 'xa', {body(7 << 20, 8)}); XA END 'x'; XA PREPARE 'x';"
            "XA COMMIT 'x';"
            "INSERT INTO t (v) VALUES ('last')"
        )
        found: dict[str, dict[object, tuple[object, ...]]] = {"t": {}, "big": {}}
        with Consumer(bench.kafka.bootstrap, name) as consumer:
            while "last" not in {row[0] for row in found["t"].values()}:
                event = consumer.poll(60)
                assert event is not None, producer.text
                assert event.seqno == consumer.position.seqno
                for change in event.changes:
                    if isinstance(change, RowChanges):
                        apply(found[change.table], change)
        assert producer.stop() == 0
    digest = "SELECT id, v, SHA2(COALESCE(body, ''), 256) FROM"
    for table, select in (("big", f"{digest} {name}.big"), ("t", f"SELECT id, v, '' FROM {name}.t")):
        lines = [line.split("\t") for line in bench.sql(f"{select} ORDER BY id").splitlines()[1:]]
        there = {int(line[0]): (line[1], *filter(None, line[2:])) for line in lines}
        assert found[table] == there
    count, largest = messages(bench.config)
    assert largest < LIMIT
    assert count > LARGE // LIMIT


def apply(rows: dict[object, tuple[object, ...]], change: RowChanges) -> None:
    """A change's rows, with a digest in the place of what is large."""
    for row in change.rows:
        if row.before is not None:
            del rows[row.before["id"]]
        if row.after is not None:
            values = dict(row.after)
            key = values.pop("id")
            rows[key] = tuple(
                hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else value for value in values.values()
            )
