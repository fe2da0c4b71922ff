"""A transactional Kafka producer that fences older ones: of a log, or of a sink."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConnectorError, Fenced
from connector.kafka.client import LOG, Refusals, checked_properties, failure, properties

PATIENCE: Final = 60.0  # seconds a step may take, retried within
STEP: Final = 10.0
LIBRDKAFKA_LARGEST: Final = 1_000_000_000
LINGER: Final = 5  # milliseconds; librdkafka's default. `commit` waits for no message to linger
BATCH_SIZE: Final = 1_000_000  # bytes; librdkafka's default
PARTITION_BY_KEY: Final = -1
_TIMEOUT: Final = "transaction.timeout.ms"


class Transactions:
    """A transactional producer.

    `open` fences every older producer with the same id. Messages sent between `begin` and `commit` are invisible to
    readers of committed data; `commit` returns when all of them are durable and visible. After any error, close the
    object: the messages since `begin` are then aborted, by this producer or by the next one.

    Args:
        config: service, brokers, pacing.
        clock: the clock for `PATIENCE`.
        transactional_id: None: the event topic's name, for the log's only producer.
        required: further properties that override the user's, as for `properties`.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        *,
        transactional_id: str | None = None,
        **required: str | int,
    ) -> None:
        self._config = config
        self._id = transactional_id or config.topic
        self._clock = clock
        self._lost: KafkaError | None = None
        self._unlocated: Message | None = None  # reported without its offset
        self._refusals = Refusals()
        largest = min(config.kafka.max_message_bytes, LIBRDKAFKA_LARGEST)
        buffered = max(2 * config.publish.commit_bytes, largest) // 1024 + 1024
        chosen: dict[str, Any] = {
            "linger.ms": LINGER,
            "queue.buffering.max.kbytes": buffered,
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": config.publish.compression,
            "batch.size": min(BATCH_SIZE, largest),  # the topic's limit is a batch's
            _TIMEOUT: 60_000,
            **properties(
                config.kafka,
                transactional_id=self._id,
                enable_idempotence=True,
                acks="all",
                message_max_bytes=largest,
                delivery_report_only_error=False,
                **required,
            ),
            "on_delivery": self._delivered,
            "error_cb": self._refusals,
        }
        with checked_properties():
            self._producer = Producer(chosen, logger=LOG)
        self._timeout = float(chosen[_TIMEOUT]) / 1000
        self._began = inf, inf  # by both clocks; no transaction yet

    def open(self) -> None:
        """Fence older producers; wait until their transactions have ended."""
        self._step("the transactional producer cannot start", self._producer.init_transactions)

    def begin(self) -> None:
        """Begin a Kafka transaction."""
        self._refusals.forget()
        self._unlocated = None
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise failure(error, "a Kafka transaction cannot begin", transactional_id=self._id) from error
        self._began = self._clock.monotonic(), self._clock.now()

    def send(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Send a message within the transaction; waits while librdkafka's own queue is full.

        Args:
            topic: the topic.
            partition: PARTITION_BY_KEY: the partitioner chooses.
            key: None: it has none.
            value: None: a tombstone.
        """
        give_up = None
        while True:
            try:
                self._producer.produce(topic, value, key, partition)
            except BufferError:
                now = self._clock.monotonic()
                give_up = give_up or now + PATIENCE
                if now > give_up:
                    silent = BrokerUnavailable("Kafka accepts no messages", topic=topic, partition=partition)
                    raise self._refusals.explain(silent) from None
                self._serve(self._producer.poll, 0.01)
            except KafkaException as error:
                cause = self._cause(error.args[0])
                raise self._failure(cause, "a message cannot be sent", topic=topic, partition=partition) from error
            else:
                return

    def commit(self) -> None:
        """Make the transaction's messages durable and visible.

        A broker that knows nothing yet of a producer accepts any batch of it as the first. When it refuses the first
        of several batches that are under way, as while it becomes the partition's leader, and accepts the second,
        librdkafka concludes that it has the first, too, and reports its messages as delivered, without offsets: they
        are lost. Such a transaction is not committed.

        Raises:
            BrokerUnavailable: the brokers do not answer, or did not say of each message where it is.
            Fenced: a newer producer has begun.
        """
        doing = "a Kafka transaction cannot be committed"
        self._step(doing, self._flush)
        if self._unlocated is not None:
            where = {"topic": self._unlocated.topic(), "partition": self._unlocated.partition()}
            raise BrokerUnavailable(f"{doing}: Kafka did not confirm where a message is", hint="", **where)
        self._step(doing, self._producer.commit_transaction)

    def confirm(self) -> None:
        """Check, with an aborted transaction, that no newer producer of the log has begun.

        Raises:
            Fenced: one has.
        """
        self.begin()
        self.send(self._config.position_topic, 0, b"confirm", b"")
        self._serve(self._producer.flush, STEP)
        self._step("the producer's session cannot be confirmed", self._producer.abort_transaction)

    def close(self) -> None:
        """Abort the open transaction if Kafka answers; otherwise the next producer's `open` aborts it."""
        try:
            self._producer.purge()
            self._producer.abort_transaction(STEP)
        except KafkaException as error:
            LOG.debug("no transaction to abort: %s", error)

    def _step(self, doing: str, step: Callable[[float], None]) -> None:
        give_up = self._clock.monotonic() + PATIENCE
        while True:
            try:
                step(STEP)
            except KafkaException as error:
                cause = error.args[0]
                if cause.retriable() and self._clock.monotonic() < give_up:
                    continue
                # a message's own error is the cause of the transaction's
                if self._lost is not None and not cause.fatal():
                    cause = self._lost
                raise self._failure(cause, doing, transactional_id=self._id) from error
            else:
                return

    def _cause(self, refused: KafkaError) -> KafkaError:
        """The error for which librdkafka takes no message any more, which only a step of the transaction tells."""
        if refused.code() == KafkaError._FATAL:
            try:
                self._producer.abort_transaction(STEP)
            except KafkaException as error:
                refused = error.args[0]
        return refused

    def _flush(self, seconds: float) -> None:
        """Wait until each message is delivered or lost.

        Raises:
            KafkaException: some are neither in time; retriable.
        """
        self._serve(self._producer.flush, seconds)
        if len(self._producer):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "messages are not delivered", retriable=True))

    def _failure(self, cause: KafkaError, doing: str, **where: object) -> ConnectorError:
        """Convert an error within a transaction.

        Brokers end a transaction that was open for too long, as when this machine stood still, and then refuse its
        producer in the words of a fencing. Only the log tells whether there is a newer producer as well.
        """
        self._serve(self._producer.poll, 0)  # runs the callbacks that wait
        error = self._refusals.explain(failure(cause, doing, **where))
        began, began_at = self._began
        # The one or the other clock goes on while a machine is suspended.
        seconds = max(self._clock.monotonic() - began, (self._clock.now() - began_at) / 1e6)
        if not isinstance(error, Fenced) or seconds < self._timeout:
            return error
        return BrokerUnavailable(
            f"Kafka has ended a transaction that was open for {seconds:.0f} s ({doing}: {cause.str()})",
            hint=f"unless this machine stood still, raise {_TIMEOUT} in kafka.properties",
            **where,
        )

    def _serve(self, wait: Callable[[float], object], seconds: float) -> None:
        """Run callbacks. A fatal error is raised by the transaction's next step, with its code."""
        try:
            wait(seconds)
        except (KafkaException, SystemError) as error:
            # confluent-kafka raises a fatal error within its callbacks; if a delivery report follows in the same call,
            # the interpreter finds a callback that ran with an exception set, and raises SystemError
            LOG.debug("the transactional producer is lost: %s", error)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            if message.offset() is None and self._unlocated is None:
                self._unlocated = message
        elif self._lost is None and error.code() != KafkaError._PURGE_QUEUE:
            self._lost = error
            fields = {"topic": message.topic(), "partition": message.partition(), "why": error.str()}
            LOG.warning("a message was not delivered", extra=fields)
