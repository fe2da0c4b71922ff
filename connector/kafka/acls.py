"""Access rules (ACLs) of a log's four topics, for brokers with an authorizer.

Only the producer writes events, positions and prepared transactions, and only it may use the transactional id, with
which another process could fence it. Operators write requests to the control topic. Once a topic has a rule, Kafka
refuses everything that no rule allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # what its documentation names is not exported
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from connector.config.model import Config
from connector.errors import PreflightError
from connector.kafka.client import Refusals, admin_client, failure

PATIENCE: Final = 30.0
_ANY_HOST: Final = "*"
_READ: Final = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
_MAKE: Final = (AclOperation.CREATE, AclOperation.WRITE)


def rules(
    config: Config, *, producers: Sequence[str], consumers: Sequence[str], operators: Sequence[str]
) -> list[AclBinding]:
    """The rules of one log.

    Args:
        config: the service.
        producers: principals (`User:name`) under which `thl produce` runs.
        consumers: principals under which `thl apply`, `thl list` and reading programs run.
        operators: principals of consumers that may also ask a producer to go offline, or to load tables.

    Returns:
        Each rule once.
    """
    found: dict[AclBinding, None] = {}
    for who in producers:
        found |= dict.fromkeys(_producer(config, who))
    for who in (*consumers, *operators):
        found |= dict.fromkeys(_consumer(config, who))
    for who in operators:
        found[_rule(ResourceType.TOPIC, config.control_topic, who, AclOperation.WRITE)] = None
    return list(found)


def described(rule: AclBinding) -> str:
    """A rule on one line."""
    pattern = "" if ResourcePatternType(rule.resource_pattern_type) is ResourcePatternType.LITERAL else "*"
    operation, kind = AclOperation(rule.operation).name, ResourceType(rule.restype).name
    return f"allow {rule.principal} {operation.lower()} on {kind.lower()} {rule.name}{pattern}"


def create(config: Config, bindings: Sequence[AclBinding]) -> None:
    """Add these rules to those of the brokers; may be repeated.

    Raises:
        PreflightError: the brokers have no authorizer, or refuse access.
        BrokerUnavailable: the brokers do not answer.
    """
    refusals = Refusals()
    admin = admin_client(config.kafka, refusals)
    with refusals.asking(admin, "access rules cannot be made", service=config.service):
        answers = admin.create_acls(list(bindings), request_timeout=PATIENCE)
        for answer in answers.values():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.SECURITY_DISABLED:
                    raise PreflightError(
                        "the brokers have no authorizer, so every client may write",
                        hint="set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer, and "
                        "super.users, in every server.properties",
                    ) from error
                raise failure(error, "an access rule cannot be made") from error


def _producer(config: Config, who: str) -> Iterator[AclBinding]:
    for topic in (config.topic, config.control_topic, config.position_topic, config.prepared_topic):
        for operation in (*_READ, *_MAKE):
            yield _rule(ResourceType.TOPIC, topic, who, operation)
    for operation in (AclOperation.WRITE, AclOperation.DESCRIBE):
        yield _rule(ResourceType.TRANSACTIONAL_ID, config.topic, who, operation)


def _consumer(config: Config, who: str) -> Iterator[AclBinding]:
    for topic in (config.topic, config.control_topic, config.position_topic):
        for operation in _READ:
            yield _rule(ResourceType.TOPIC, topic, who, operation)
    # Only groups that commit need one: those of `connector.consume` whose names begin with the log's.
    yield _rule(ResourceType.GROUP, f"{config.topic}.", who, AclOperation.READ, ResourcePatternType.PREFIXED)


def _rule(
    kind: ResourceType,
    name: str,
    who: str,
    operation: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    return AclBinding(kind, name, pattern, who, _ANY_HOST, operation, AclPermissionType.ALLOW)
