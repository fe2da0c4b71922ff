"""A broker refuses the first batch of a new producer and accepts the second; librdkafka takes both for delivered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import BrokerUnavailable
from connector.kafka.transactions import PARTITION_BY_KEY, Transactions
from tests.support.clock import PATIENCE
from tests.support.proxied_kafka import proxied_broker
from tests.support.proxy import Proxy, Way

pytestmark = pytest.mark.servers

PRODUCE = b"\0\0"  # the key of the request
TOPIC = "rows.first"
MISSING = TOPIC[::-1]
MESSAGES = [str(n).encode().ljust(300_000, b".") for n in range(9)]  # three a batch


class FirstBatch:
    """Sends the first batch of `TOPIC` to a topic that is missing, so that the broker itself refuses it."""

    def __init__(self) -> None:
        self.refused = False

    def __call__(self, way: Way, chunk: bytes) -> bytes:
        if way is Way.DOWN:
            return chunk.replace(MISSING.encode(), TOPIC.encode())
        head, rest = chunk[:200], chunk[200:]
        if not self.refused and head[4:6] == PRODUCE and TOPIC.encode() in head:
            self.refused = True
            head = head.replace(TOPIC.encode(), MISSING.encode())
        return head + rest


def committed(bootstrap: str) -> list[bytes | None]:
    """The values in the topic."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "enable.partition.eof": True}
    found: list[bytes | None] = []
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while (message := consumer.poll(PATIENCE)) is not None and not message.error():
            found.append(message.value())
    return found


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Proxy]]:
    with proxied_broker(tmp_path_factory.mktemp("kafka")) as (started, proxy):
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        for made in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
            made.result(30)
        yield started.bootstrap, proxy


@pytest.mark.parametrize("partition", [0, PARTITION_BY_KEY])
def test_what_follows_a_refused_batch_is_not_committed_without_it(broker: tuple[str, Proxy], partition: int) -> None:
    bootstrap, proxy = broker
    config = Config(service=f"s{partition + 1}", kafka=Kafka(bootstrap=bootstrap))
    before = len(committed(bootstrap))
    first_batch = proxy.change = FirstBatch()

    def write() -> None:
        with closing(Transactions(config, SystemClock())) as transactions:
            transactions.open()
            transactions.begin()
            for message in MESSAGES:
                transactions.send(TOPIC, partition, b"key", message)
            transactions.commit()

    with pytest.raises(BrokerUnavailable, match="where a message is") as unconfirmed:
        write()
    assert first_batch.refused
    assert unconfirmed.value.where == {"topic": TOPIC, "partition": 0}
    write()
    assert committed(bootstrap)[before:] == MESSAGES
