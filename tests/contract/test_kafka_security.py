"""TLS and passwords on the way to Kafka: our producer, our readers and Spark, as `kafka.properties` says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pyarrow as pa
import pytest

from connector.config import Config
from connector.errors import BrokerUnavailable
from connector.publish import reading, topics
from connector.publish.reading import LogReader
from connector.publish.topics import Topics
from connector.reassemble.large import LargeMessages
from connector.reassemble.spark import EARLIEST, Session
from tests.bench.certificates import write_certificates
from tests.contract.test_publish_log import Log, position_of
from tests.integration.producing import until
from tests.support.secure_kafka import SecureBroker, secure_broker
from tests.support.spark import PROFILES, Profile, session

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("secure")) as started:
        yield started


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture
def config(broker: SecureBroker) -> Config:
    """A log with two events, on the listener with TLS and a password."""
    made = Config(service=f"s{uuid.uuid4().hex[:8]}", kafka=broker.kafka())
    Topics(made).ensure()
    log = Log(made)
    log.online()
    log.publisher.put([*log.event("one"), *log.event("two")])
    log.publisher.drain()
    log.close()
    return made


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (topics, reading):
        monkeypatch.setattr(module, "PATIENCE", 5.0)


OFFSETS = {0: EARLIEST, 1: EARLIEST}


def test_what_is_published_is_read_back(config: Config) -> None:
    assert position_of(config).last_finished == 1
    with LogReader(config, settled=True) as reader:
        assert reader.partitions(config.topic) == 2
        assert reader.control().epochs[-1].epoch == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_spark_reads_what_our_consumers_read(config: Config, spark: Session, profile: Profile) -> None:
    stream = profile(spark, config.kafka, config.topic, OFFSETS)
    found: list[pa.Table] = []

    def whole() -> bool:
        batch = stream.next(0.2)
        found.extend([] if batch is None else [batch])
        return sum(each.num_rows for each in found) >= 4  # two markers, two events

    try:
        until(whole)
    finally:
        stream.stop()

    rows = pa.concat_tables(found).to_pylist()
    with LargeMessages(config.kafka, config.topic) as large:
        for row in rows:
            assert large.fetch(row["partition"], row["offset"])["value"][0].as_py() == row["value"]


def test_a_wrong_password_is_told(config: Config, broker: SecureBroker, short_patience: None) -> None:
    wrong = broker.kafka(password="guessed")
    refused = config.model_copy(update={"kafka": wrong})
    with pytest.raises(BrokerUnavailable, match="Authentication failed"):
        Topics(refused).ensure()
    with LogReader(refused) as reader, pytest.raises(BrokerUnavailable, match="Authentication failed"):
        reader.control()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_wrong_password_ends_a_stream(config: Config, broker: SecureBroker, spark: Session, profile: Profile) -> None:
    stream = profile(spark, broker.kafka(password="guessed"), config.topic, OFFSETS)
    try:
        with pytest.raises(BrokerUnavailable, match="Authentication failed"):
            until(lambda: stream.next(0.2) is not None)
    finally:
        stream.stop()


def test_a_broker_that_others_vouch_for_is_not_believed(
    config: Config, broker: SecureBroker, short_patience: None
) -> None:
    with write_certificates() as others:
        misled = config.model_copy(update={"kafka": broker.kafka(authority=others.authority)})
        with pytest.raises(BrokerUnavailable, match="certificate verify failed"):
            Topics(misled).ensure()
        with LogReader(misled) as reader, pytest.raises(BrokerUnavailable, match="certificate verify failed"):
            reader.partitions(misled.topic)
