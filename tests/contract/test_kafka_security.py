"""TLS, passwords and ACLs of Kafka: producer, readers and Spark use `kafka.properties`."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from connector import cli
from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.consume import Consumer as LogConsumer
from connector.errors import BrokerUnavailable, PreflightError
from connector.kafka import acls, arrow_reader, large_messages, range_reader, topics
from connector.kafka import log_reader as reading
from connector.kafka.handshake import EARLIEST
from connector.kafka.large_messages import LargeMessages
from connector.kafka.log_reader import LogReader
from connector.kafka.requests import send_request, send_requests
from connector.kafka.topics import Topics
from connector.kafka.transactions import Transactions
from connector.log.epochs.control import OfflineRequest
from connector.log.epochs.loads import LoadRequest
from connector.log.ids import Epoch
from connector.log.transaction.layout import TableName
from connector.spark.session import SparkRun
from connector.spark.stream.parts import Batch
from tests.contract.test_publish_log import Log, position_of
from tests.support.certificates import write_certificates
from tests.support.grants import FOLDER
from tests.support.producing import until
from tests.support.secure_kafka import SecureBroker, secure_broker
from tests.support.servers.environment import Broker
from tests.support.servers.kafka_tools import write_tool
from tests.support.spark import READERS, Reader, session

pytestmark = pytest.mark.servers
SCRIPT = FOLDER / "kafka-acls.sh"
ROLES = ("producer", "consumer", "operator", "stranger")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("secure"), ROLES) as started:
        yield started


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
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


def test_a_log_is_written_and_read_over_tls(config: Config) -> None:
    assert position_of(config).last_finished == 1
    with LogReader(config, high_watermark=True) as reader:
        assert reader.partitions(config.topic) == 2
        assert reader.control().epochs[-1].epoch == 1


@pytest.mark.parametrize("opened", READERS)
def test_spark_reads_the_same_as_a_consumer(config: Config, spark: SparkRun, opened: Reader) -> None:
    stream = opened(spark, config.kafka, config.topic, OFFSETS)
    found: list[Batch] = []

    def whole() -> bool:
        batch = stream.next(0.2)
        found.extend([] if batch is None else [batch])
        return sum(each.messages for each in found) >= 4  # two markers, two events

    try:
        until(whole)
    finally:
        stream.stop()

    parts = [part for batch in found for part in batch.parts]
    rows = [row for part in parts if isinstance(part, pa.RecordBatch) for row in part.to_pylist()]
    assert rows
    with LargeMessages(config.kafka, config.topic) as large:
        for row in rows:
            assert large.fetch(row["partition"], row["offset"])["value"][0].as_py() == row["value"]


def test_a_wrong_password_is_refused(config: Config, broker: SecureBroker, short_patience: None) -> None:
    wrong = broker.kafka(password="guessed")
    refused = config.model_copy(update={"kafka": wrong})
    with pytest.raises(BrokerUnavailable) as raised:
        Topics(refused).ensure()
    assert raised.value.where["code"] == "_AUTHENTICATION"
    with LogReader(refused) as reader, pytest.raises(BrokerUnavailable) as raised:
        reader.control()
    assert raised.value.where["code"] == "_AUTHENTICATION"


def test_a_wrong_password_is_the_reason_of_every_reader_that_waits_in_vain(
    config: Config, broker: SecureBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong, topic = broker.kafka(password="guessed"), config.topic
    for module in (arrow_reader, large_messages, range_reader):
        monkeypatch.setattr(module, "PATIENCE", 3.0)
    with (
        arrow_reader.ArrowReader(wrong, topic, {0: 0}) as whole,
        LargeMessages(wrong, topic) as large,
        closing(range_reader.RangeReader(wrong, topic, SystemClock())) as ranges,
    ):
        for read in (whole.next, lambda: large.fetch(0, 0), lambda: list(ranges.batches(0, 0, 1))):
            with pytest.raises(BrokerUnavailable, match="sends no more") as refused:
                read()
            assert "uthentication failed" in str(refused.value.where["cause"])
            assert refused.value.hint == "see kafka.properties"


def test_a_wrong_password_is_the_reason_of_a_writer_that_waits_in_vain(
    config: Config, broker: SecureBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = config.model_copy(update={"kafka": broker.kafka(password="guessed")})
    for name in ("transactions.PATIENCE", "transactions.STEP", "requests.PATIENCE"):
        monkeypatch.setattr(f"connector.kafka.{name}", 3.0)
    request = OfflineRequest(epoch=Epoch(1), asked_at=1, asked_by="me", reason="")
    for write in (Transactions(wrong, SystemClock()).open, lambda: send_request(wrong, request)):
        with pytest.raises(BrokerUnavailable) as refused:
            write()
        assert "uthentication failed" in str(refused.value.where["cause"])
        assert refused.value.hint == "see kafka.properties"


@pytest.mark.parametrize("opened", READERS)
def test_a_wrong_password_ends_a_stream(config: Config, broker: SecureBroker, spark: SparkRun, opened: Reader) -> None:
    stream = opened(spark, broker.kafka(password="guessed"), config.topic, OFFSETS)
    try:
        with pytest.raises(BrokerUnavailable) as refused:
            until(lambda: stream.next(0.2) is not None)
        assert "SaslAuthenticationException" in str(refused.value.where["cause"])
    finally:
        stream.stop()


@pytest.mark.long
def test_a_broker_with_a_certificate_of_another_authority_is_refused(
    config: Config, broker: SecureBroker, short_patience: None
) -> None:
    with write_certificates() as others:
        misled = config.model_copy(update={"kafka": broker.kafka(authority=others.authority)})
        with pytest.raises(BrokerUnavailable) as raised:
            Topics(misled).ensure()
        assert raised.value.where["code"] == "_SSL"
        with LogReader(misled) as reader, pytest.raises(BrokerUnavailable) as raised:
            reader.partitions(misled.topic)
        assert raised.value.where["code"] == "_SSL"


@pytest.fixture(scope="module")
def ruled(broker: SecureBroker) -> Config:
    """A log with rules, made by its own producer under these; its configuration is the super user's."""
    made = Config(service=f"s{uuid.uuid4().hex[:8]}", kafka=broker.kafka())
    roles = {f"{role}s": [f"User:{role}"] for role in ROLES[:3]}
    acls.create(made, acls.rules(made, **roles))
    producer = role_of(made, broker, "producer")
    Topics(producer).ensure()
    log = Log(producer)
    log.online()
    log.publisher.put([*log.event("one"), *log.event("two")])
    log.publisher.drain()
    log.close()
    return made


def role_of(config: Config, broker: SecureBroker, role: str) -> Config:
    return config.model_copy(update={"kafka": broker.kafka(user=role)})


def written(kafka: Kafka, topic: str, value: bytes) -> str:
    """What the brokers say to who writes a message: "" when they take it."""
    answers: list[KafkaError | None] = []
    told: dict[str, str | int] = {
        **kafka.properties,
        "bootstrap.servers": kafka.bootstrap,
        "message.timeout.ms": 10_000,
    }
    producer = Producer({**told, "on_delivery": lambda error, _: answers.append(error)})
    producer.produce(topic, value, partition=0)
    producer.flush(15)
    (error,) = answers
    return "" if error is None else error.name()


def newest(config: Config) -> bytes:
    """A well-formed event of the log, to be put in once more by others."""
    with LargeMessages(config.kafka, config.topic) as messages:
        value = messages.fetch(0, 2)["value"][0].as_py()
    assert isinstance(value, bytes)
    return value


@pytest.mark.parametrize("role", ["consumer", "operator", "stranger"])
def test_only_the_producer_writes_events_positions_and_prepared_transactions(
    ruled: Config, broker: SecureBroker, role: str
) -> None:
    event, kafka = newest(ruled), role_of(ruled, broker, role).kafka
    for topic in (ruled.topic, ruled.position_topic, ruled.prepared_topic):
        assert written(kafka, topic, event) == "TOPIC_AUTHORIZATION_FAILED", topic
    # Nor may they take its transactional id: it would be fenced.
    with pytest.raises(PreflightError):
        Transactions(role_of(ruled, broker, role), SystemClock()).open()


@pytest.mark.parametrize("role", ["consumer", "operator"])
def test_consumers_and_operators_read(ruled: Config, broker: SecureBroker, role: str) -> None:
    reading_it = role_of(ruled, broker, role)
    with LogReader(reading_it, high_watermark=True) as reader:
        assert reader.partitions(ruled.topic) == 2
        assert reader.control().epochs[-1].epoch == 1
    kafka = reading_it.kafka
    with LogConsumer(
        kafka.bootstrap, ruled.service, properties=kafka.properties, group=f"{ruled.topic}.{role}", until_end=True
    ) as consumer:
        found = []
        for event in consumer:
            found.append(event.seqno)
            consumer.commit()
    assert found == [0, 1]


@pytest.mark.parametrize("opened", READERS)
def test_spark_reads_as_a_consumer(ruled: Config, broker: SecureBroker, spark: SparkRun, opened: Reader) -> None:
    stream = opened(spark, role_of(ruled, broker, "consumer").kafka, ruled.topic, OFFSETS)
    try:
        until(lambda: stream.next(0.2) is not None)
    finally:
        stream.stop()


def test_requests_are_for_producers_and_operators(ruled: Config, broker: SecureBroker) -> None:
    request = OfflineRequest(epoch=Epoch(0), asked_at=1, asked_by="me", reason="")
    for role in ("producer", "operator"):
        assert send_request(role_of(ruled, broker, role), request) > 0
    for role in ("consumer", "stranger"):
        with pytest.raises(PreflightError):
            send_request(role_of(ruled, broker, role), request)


def test_several_requests_are_written_in_their_order(ruled: Config, broker: SecureBroker) -> None:
    config = role_of(ruled, broker, "operator")
    requests = [LoadRequest(table=TableName("shop", f"t{n}"), load=f"{n}", asked_at=n, asked_by="me") for n in range(9)]
    offsets = send_requests(config, requests)
    assert offsets == list(range(offsets[0], offsets[0] + len(requests)))
    with LogReader(config) as reader:
        assert list(reader.control().load_requests.values()) == requests


def test_a_user_without_rules_is_refused(ruled: Config, broker: SecureBroker) -> None:
    with (
        LogReader(role_of(ruled, broker, "stranger")) as reader,
        pytest.raises(PreflightError),
    ):
        reader.partitions(ruled.topic)


def test_thl_acls_creates_the_same_rules(
    ruled: Config, broker: SecureBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = [part for role in ROLES[:3] for part in (f"--{role}", f"User:{role}")]
    where = ["--set", f"service={ruled.service}", "--set", f"kafka.bootstrap={broker.plain}"]
    assert cli.run(["acls", *where, *roles, "--create"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert f"allow User:producer write on topic {ruled.position_topic}" in said
    assert f"allow User:operator write on topic {ruled.control_topic}" in said
    assert [line for line in said if "write" in line and "producer" not in line and ".control" not in line] == []


def test_the_script_of_docker_grants_creates_the_same_rules(broker: SecureBroker, tmp_path: Path) -> None:
    """With Kafka's own tool, on a log that does not exist yet."""
    made = Config(service=f"s{uuid.uuid4().hex[:8]}", kafka=broker.kafka())
    tool = write_tool(tmp_path / "kafka-acls.sh", "AclCommand")
    principals = [f"User:{role}" for role in ROLES[:3]]
    subprocess.run(
        [str(SCRIPT), made.topic, *principals, "--bootstrap-server", broker.plain],
        check=True, capture_output=True, env={"KAFKA_ACLS": str(tool), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    admin = AdminClient({"bootstrap.servers": broker.plain})
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    there = {one for one in admin.describe_acls(everything).result(30) if one.name.startswith(made.topic)}
    roles = {f"{role}s": [f"User:{role}"] for role in ROLES[:3]}
    assert there == set(acls.rules(made, **roles))


def test_brokers_without_an_authorizer_are_refused(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--set", f"kafka.bootstrap={kafka_broker.bootstrap}"]
    assert cli.run(["acls", *where, "--producer-principal", "User:p", "--create"]) == PreflightError.exit_code
    assert "no authorizer" in capsys.readouterr().err
