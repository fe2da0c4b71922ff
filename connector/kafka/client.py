"""Common parts of the Kafka clients: properties, error mapping, the error callback."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, runtime_checkable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from connector.addresses import on_this_machine
from connector.config.kafka import Kafka
from connector.config.secret_files import present
from connector.errors import BrokerUnavailable, ConfigError, ConnectorError, Fenced, PreflightError, Unsupported
from connector.redaction import is_secret

LOG: Final = logging.getLogger(__name__)

_FENCED: Final = frozenset(
    (
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.TRANSACTION_COORDINATOR_FENCED,
    )
)
_REFUSED: Final = frozenset(
    (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._INVALID_ARG,
    )
)
_KERBEROS: Final = "mechanism GSSAPI"
_CROSSES: Final = "the password for the brokers crosses the network"
_IDENTITY: Final = "ssl.endpoint.identification.algorithm"
_UNVERIFIED: Final = {"enable.ssl.certificate.verification": ("false", "f", "0"), _IDENTITY: ("", "none")}
_DOWN: Final = "are the brokers of kafka.bootstrap up? how often they are tried again: kafka.retries"
_SLOW: Final = (
    "do the brokers answer? If the network to them is slow, or their quota small, lower publish.commit_bytes, or raise "
    "transaction.timeout.ms in kafka.properties"
)
LOST: Final = frozenset((KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN))


def properties(kafka: Kafka, **required: str | int | float | bool) -> dict[str, str | int | float | bool]:
    """librdkafka properties: the user's, and over them those that the log's promises need.

    Args:
        kafka: the section.
        required: the latter, with `_` for `.`.
    """
    return {
        "bootstrap.servers": kafka.bootstrap,
        **present(kafka.properties),
        # Brokers create a topic that a client asks about, by default: without compaction, and deleted after a week.
        "allow.auto.create.topics": False,
        **{name.replace("_", "."): value for name, value in required.items()},
    }


@contextmanager
def checked_properties() -> Iterator[None]:
    """Create a client in the context.

    Raises:
        ConfigError: librdkafka refuses one of its properties.
    """
    try:
        yield
    except (KafkaException, TypeError, ValueError) as error:
        cause = str(error.args[0].str() if isinstance(error, KafkaException) else error)
        hint = "kafka.properties are librdkafka's; Spark's are kafka.spark_properties"
        if _KERBEROS in cause:
            hint = "this librdkafka has no Kerberos, its default: set kafka.properties.sasl.mechanism, as SCRAM-SHA-512"
        raise ConfigError(f"kafka.properties: {cause}", hint=hint) from error


def admin_client(kafka: Kafka, refusals: Refusals | None = None) -> AdminClient:
    """A client of Kafka's administration.

    Args:
        kafka: brokers and their properties.
        refusals: the client's error callback.

    Raises:
        ConfigError: librdkafka refuses a property.
    """
    chosen: dict[str, Any] = {**properties(kafka)}
    if refusals is not None:
        chosen["error_cb"] = refusals
    with checked_properties():
        return AdminClient(chosen, logger=LOG)


def unverified(kafka: Kafka) -> Iterator[str]:
    """Reasons why others can read a password that is sent to the brokers; none if they cannot."""
    if all(on_this_machine(one.strip().rpartition(":")[0]) for one in kafka.bootstrap.split(",")):
        return
    given = {name: value.strip().lower() for name, value in kafka.properties.items()}
    if any(given[name] for name in given if is_secret(name) and not name.startswith("ssl.")):  # its key's is not sent
        if given.get("security.protocol") == "sasl_plaintext":
            yield f"{_CROSSES} without TLS: security.protocol in kafka.properties is SASL_PLAINTEXT"
        for name, off in _UNVERIFIED.items():
            if given.get(name) in off:
                yield f"{_CROSSES} to any server that answers: {name} in kafka.properties is {given[name]}"
    java = {name.removeprefix("kafka."): value.strip().lower() for name, value in kafka.spark_properties.items()}
    if any(java[name] for name in java if is_secret(name) and not name.startswith("ssl.")):
        if java.get("security.protocol") == "sasl_plaintext":
            yield f"{_CROSSES} without TLS: security.protocol in kafka.spark_properties is SASL_PLAINTEXT"
        if java.get(_IDENTITY) in {"", "none"}:
            yield f"{_CROSSES} to any server with a certificate: {_IDENTITY} in kafka.spark_properties is empty"


def failure(error: KafkaError | KafkaException, doing: str, **where: object) -> ConnectorError:
    """Convert an error of librdkafka.

    Args:
        error: the error.
        doing: the failed action, as the beginning of the sentence.
        where: ids.

    Returns:
        `Fenced` when a newer producer has taken over, `PreflightError` when a retry cannot help, `Unsupported` for a
        message larger than the topic allows, else `BrokerUnavailable`.
    """
    cause = error.args[0] if isinstance(error, KafkaException) else error
    text = f"{doing}: {cause.str()}"
    if cause.code() in _FENCED:
        return Fenced(
            f"a newer producer of this service has taken over ({text})",
            hint="only one producer of a service may run; if this one was stopped for long, start it again",
            **where,
        )
    if cause.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return Unsupported(
            text,
            hint="raise max.message.bytes of the topic, and kafka.max_message_bytes if it is smaller",
            **where,
        )
    if cause.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return PreflightError(
            text,
            hint="the brokers' transaction.max.timeout.ms is smaller than this client's transaction.timeout.ms: raise "
            "it to 900000, its default; for a producer of the log kafka.properties can lower the latter",
            **where,
        )
    if cause.code() in _REFUSED:
        return PreflightError(text, hint="check kafka.properties and this user's access rules (thl acls)", **where)
    hint = _SLOW if cause.code() == KafkaError._MSG_TIMED_OUT else _DOWN if cause.code() in LOST else ""
    return BrokerUnavailable(text, hint=hint, code=cause.name(), **where)


class Client(Protocol):
    """A client of librdkafka's, which runs its callbacks in `poll`."""

    def poll(self, timeout: float, /) -> object:
        """Run the callbacks that wait."""


@runtime_checkable
class ConsumingClient(Client, Protocol):
    """A client whose `poll` also returns messages, once it has an assignment."""

    def assignment(self) -> Sequence[object]:
        """The partitions that it reads."""


class Refusals:
    """Remembers the reason for which brokers refused a connection: an error callback of librdkafka.

    The calls themselves report only a lost connection. A broker that stops during a login looks the same, so such a
    failure is retried. A call that is answered ends the refusal.
    """

    def __init__(self) -> None:
        self._last: KafkaError | None = None
        self._unreached = ""  # why a broker was not reached during the current call

    def __call__(self, error: KafkaError) -> None:
        """Accept an error of a connection; librdkafka calls this within `poll`."""
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._last = error
        elif error.code() in (KafkaError._TRANSPORT, KafkaError._RESOLVE):
            self._unreached = error.str()

    @property
    def reason(self) -> str:
        """Why brokers were not reached, or refused a connection, since `forget`; "" if they did not."""
        return self._unreached if self._last is None else self._last.str()

    @property
    def hint(self) -> str:
        """The remedy for `reason`, if brokers refused a connection."""
        return "see kafka.properties" if self._last is not None else ""

    def explain(self, error: ConnectorError) -> ConnectorError:
        """Add `reason` to the error of a client that waited in vain; other errors have their own."""
        if isinstance(error, BrokerUnavailable) and self.reason:
            error.where = {**error.where, "cause": self.reason}
            error.hint = self.hint or error.hint
        return error

    def forget(self) -> None:
        """Forget what earlier calls met with."""
        self._last, self._unreached = None, ""

    @contextmanager
    def asking(self, client: Client, doing: str, **where: object) -> Iterator[None]:
        """Call a client in the context.

        Args:
            client: the client.
            doing: the action, as the beginning of the sentence of an error.
            where: ids.

        Raises:
            BrokerUnavailable, PreflightError: see `failure`; for a lost connection with the refusal that
                caused it, if there was one.
        """
        self._unreached = ""
        try:
            yield
        except KafkaException as error:
            client.poll(0)  # run the callbacks that wait
            cause = {"cause": self._unreached} if self._unreached else {}
            raise self.failure(error, doing, **where, **cause) from error
        if not (isinstance(client, ConsumingClient) and client.assignment()):  # or a message would be lost
            client.poll(0)
        self._last = None

    def failure(self, error: KafkaException, doing: str, **where: object) -> ConnectorError:
        """Convert an error like the function `failure`; add the refusal that caused a lost connection, if any."""
        if self._last is None or error.args[0].code() not in LOST:
            return failure(error, doing, **where)
        return BrokerUnavailable(f"{doing}: {self._last.str()}", hint=self.hint, code=self._last.name(), **where)
