"""Creates the four topics of a log with safe settings, and checks existing ones before the first write.

Safe means: with `acks=all` an acknowledged message is on two brokers, no lagging replica becomes the leader, the broker
sets the time, and retention deletes nothing too early. See Kafka's documentation, "Topic Configs".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from connector.config.kafka import LEAST_MESSAGE, Kafka
from connector.config.model import Config
from connector.errors import PreflightError, UnsafeTopic
from connector.kafka.client import Refusals, admin_client, failure

PATIENCE: Final = 30.0
SEGMENT_BYTES: Final = 16 << 20  # of compacted topics: only closed segments are compacted
TOMBSTONE_MS: Final = 60_000  # short: only a producer that goes online reads the topic
LEAST_COPIES: Final = 2
MESSAGE_BYTES: Final = "max.message.bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic's current or planned settings."""

    name: str
    partitions: int
    replication: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The brokers and topics of a log.

    Args:
        brokers: the number of brokers in the cluster.
        partitions: the number of partitions of the event topic; 0 if it does not exist yet.
        missing: topics of the log that do not exist yet.
        problems: topics that can lose data, or would once they are created.
    """

    brokers: int
    partitions: int
    missing: tuple[str, ...]
    problems: tuple[UnsafeTopic, ...]


def planned(config: Config) -> tuple[Topic, Topic, Topic, Topic]:
    """The planned event, control, position and prepared topics."""
    kafka = config.kafka
    common = {"min.insync.replicas": str(kafka.min_isr), "unclean.leader.election.enable": "false"}
    retention = -1 if kafka.retention_hours == -1 else kafka.retention_hours * 3_600_000
    events = {
        **common,
        "cleanup.policy": "delete",
        "retention.ms": str(retention),
        "retention.bytes": "-1",
        "message.timestamp.type": "LogAppendTime",
        MESSAGE_BYTES: str(kafka.max_message_bytes),
        "compression.type": "producer",
    }
    compacted = {**common, "cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
    return (
        Topic(name=config.topic, partitions=kafka.partitions, replication=kafka.replication, settings=events),
        Topic(name=config.control_topic, partitions=1, replication=kafka.replication, settings=compacted),
        Topic(name=config.position_topic, partitions=1, replication=kafka.replication, settings=compacted),
        # Compacted without retention: a transaction may stay prepared for longer than any retention.
        Topic(
            name=config.prepared_topic,
            partitions=1,
            replication=kafka.replication,
            settings={
                **compacted,
                MESSAGE_BYTES: str(kafka.max_message_bytes),
                "compression.type": "producer",
                "delete.retention.ms": str(TOMBSTONE_MS),
            },
        ),
    )


def dangers(topic: Topic, plan: Topic) -> dict[str, str]:
    """The settings of a topic that could lose data.

    Args:
        topic: the topic's current settings.
        plan: the settings of a new topic.

    Returns:
        Setting → the value it must have; `replication` and `partitions` count as settings.
    """
    must: dict[str, str] = {}
    have, want = topic.settings, plan.settings
    if topic.replication < max(plan.replication, LEAST_COPIES):
        must["replication"] = str(max(plan.replication, LEAST_COPIES))
    copies = max(int(want["min.insync.replicas"]), LEAST_COPIES)
    if int(have["min.insync.replicas"]) < copies:
        must["min.insync.replicas"] = str(copies)
    for name in ("unclean.leader.election.enable", "cleanup.policy", "message.timestamp.type"):
        if name in want and have[name] != want[name]:
            must[name] = want[name]
    for name in ("retention.ms", "retention.bytes"):
        if name in want and _limit(have[name]) < _limit(want[name]):
            must[name] = want[name]
    if MESSAGE_BYTES in want and int(have[MESSAGE_BYTES]) < LEAST_MESSAGE:  # larger rows are sent in parts
        must[MESSAGE_BYTES] = want[MESSAGE_BYTES]
    if want["cleanup.policy"] == "compact" and topic.partitions != 1:
        must["partitions"] = "1"
    return must


def _limit(text: str) -> float:
    return float("inf") if int(text) < 0 else int(text)


def create(admin: AdminClient, plan: Topic) -> bool:
    """Create a topic, unless it exists.

    Returns:
        False: it exists, with settings of its own.

    Raises:
        UnsafeTopic: there are fewer brokers than replicas.
        BrokerUnavailable, PreflightError: Kafka does not answer, or refuses access.
    """
    topic = NewTopic(
        plan.name,
        num_partitions=plan.partitions,
        replication_factor=plan.replication,
        config=dict(plan.settings),
    )
    try:
        admin.create_topics([topic], operation_timeout=PATIENCE)[plan.name].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        if error.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR:
            raise UnsafeTopic(
                f"topic {plan.name} needs {plan.replication} brokers: {error.args[0].str()}",
                hint="start more brokers, or for a sandbox set kafka.replication, kafka.min_isr and kafka.allow_unsafe",
                topic=plan.name,
                replication=plan.replication,
            ) from error
        raise failure(error, "a topic cannot be created", topic=plan.name) from error
    return True


class Topics:
    """Administers the topics of one log.

    Args:
        config: the service and its brokers.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._refusals = Refusals()
        self._admin = admin_client(config.kafka, self._refusals)

    def ensure(self) -> Kafka:
        """Create missing topics, and check all of them.

        Returns:
            The section with the actual number of partitions and the largest message that both the event topic and
            `.prepared` accept.

        Raises:
            UnsafeTopic: a topic that could lose data, unless `kafka.allow_unsafe`.
            BrokerUnavailable: Kafka does not answer.
        """
        plans = planned(self._config)
        found = {plan.name: self._inspect(plan.name) for plan in plans}
        there: list[Topic] = []
        for plan in plans:
            topic = found[plan.name]
            self._refuse(topic or plan, plan, exists=topic is not None)
            if topic is None and not create(self._admin, plan):  # another client has created it meanwhile
                topic = self._inspect(plan.name)
                self._refuse(topic or plan, plan, exists=topic is not None)
            there.append(topic or plan)
        events, _, _, prepared = there
        kafka = self._config.kafka
        sizes = (int(topic.settings[MESSAGE_BYTES]) for topic in (events, prepared))
        smallest = min(kafka.max_message_bytes, *sizes)
        return kafka.model_copy(update={"partitions": events.partitions, "max_message_bytes": smallest})

    def inspect(self, timeout: float) -> Inspection:
        """Look at the brokers and the log's topics; create nothing.

        Args:
            timeout: seconds to wait for the brokers.

        Raises:
            BrokerUnavailable, PreflightError: the brokers do not answer in time, or refuse the user.
        """
        with self._refusals.asking(self._admin, "the brokers cannot be reached", brokers=self._config.kafka.bootstrap):
            brokers = len(self._admin.list_topics(timeout=timeout).brokers)
        problems: list[UnsafeTopic] = []
        missing: list[str] = []
        partitions = 0
        for plan in planned(self._config):
            topic = self._inspect(plan.name)
            if topic is None:
                missing.append(plan.name)
            elif plan.name == self._config.topic:
                partitions = topic.partitions
            try:
                self._refuse(topic or plan, plan, exists=topic is not None)
            except UnsafeTopic as error:
                problems.append(error)
        return Inspection(brokers, partitions, tuple(missing), tuple(problems))

    def setting(self, name: str) -> str:
        """The current value of a setting of the event topic.

        Raises:
            PreflightError: there is no such topic, or access is refused.
            BrokerUnavailable: Kafka does not answer.
        """
        topic = self._inspect(self._config.topic)
        if topic is None:
            raise PreflightError("there is no such log", topic=self._config.topic)
        return topic.settings[name]

    def _refuse(self, topic: Topic, plan: Topic, *, exists: bool) -> None:
        must = dangers(topic, plan)
        if not must or self._config.kafka.allow_unsafe:
            return
        wrong = ", ".join(f"{name} must be {value}" for name, value in must.items())
        raise UnsafeTopic(
            f"topic {topic.name} {'could' if exists else 'would'} lose data: {wrong}",
            hint=self._remedy(topic.name, must)
            if exists
            else "kafka.replication and kafka.min_isr are too small; for a sandbox set kafka.allow_unsafe",
            topic=topic.name,
        )

    def _remedy(self, name: str, must: Mapping[str, str]) -> str:
        """The command that corrects the settings, as far as a command can."""
        settings = ",".join(f"{key}={value}" for key, value in must.items() if "." in key)
        if not settings:
            return f"re-create {name}, or reassign its partitions with kafka-reassign-partitions.sh"
        return (
            f"kafka-configs.sh --bootstrap-server {self._config.kafka.bootstrap} --alter --entity-type topics "
            f"--entity-name {name} --add-config {settings}"
        )

    def _inspect(self, name: str) -> Topic | None:
        with self._refusals.asking(self._admin, "a topic's settings cannot be read", topic=name):
            facts = self._admin.list_topics(name, timeout=PATIENCE).topics[name]
            if facts.error is not None:
                if facts.error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:
                    return None
                raise failure(facts.error, "topics cannot be listed", topic=name)
            resource = ConfigResource(ResourceType.TOPIC, name)
            entries = self._admin.describe_configs([resource], request_timeout=PATIENCE)[resource].result()
        return Topic(
            name=name,
            partitions=len(facts.partitions),
            replication=min(len(partition.replicas) for partition in facts.partitions.values()),
            settings={key: str(entry.value) for key, entry in entries.items()},
        )
