"""The sections `kafka` and `registry`: the brokers, the topics and the schema registry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, SecretStr, model_validator

from connector.config.secret_files import Properties, read_secret_files
from connector.config.section import Bytes, Name, Section

LEAST_MESSAGE: Final = 16 << 10  # bytes: a fragment's header and a useful rest
_BROKER: Final = re.compile(
    r"(?i:(?:sasl_)?(?:plaintext|ssl)://)?(?:\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[^\s:/@\[\]]+):(\d{1,5})"
)


def _brokers(text: str) -> str:
    for address in text.split(","):
        found = _BROKER.fullmatch(address.strip())
        if found is None or not 0 < int(found[1]) <= 65535:
            raise ValueError(
                "not broker addresses: write host:port[,host:port…] without http://, ports from 1 to 65535"
            )
    return text


class Kafka(Section):
    """The brokers, and the topics `thl.<service>`, `….control`, `….position` and `….prepared`."""

    bootstrap: Annotated[str, AfterValidator(_brokers)] = Field("127.0.0.1:9092", description="host:port[,host:port…].")
    topic_prefix: Name = Field("thl", description="Topics are <prefix>.<service>[.control|.position|.prepared].")
    partitions: int = Field(1, ge=1, le=1024, description="Partitions of the event topic, when it is created.")
    replication: int = Field(3, ge=1, description="Replication factor of every topic, when it is created.")
    min_isr: int = Field(
        2, ge=1, description="min.insync.replicas: set when a topic is created, checked when it exists."
    )
    allow_unsafe: bool = Field(False, description="Accept topics whose settings can lose data, as in a sandbox.")
    retention_hours: int = Field(168, ge=-1, description="Retention of the event topic; -1: unlimited.")
    max_message_bytes: Bytes = Field(
        2 << 20,
        ge=LEAST_MESSAGE,
        description="max.message.bytes of the event topic and of .prepared, when created; a larger row is sent in "
        "parts. In continuous mode Spark's JVM holds some 36 such messages of each partition: see apply.heap.",
    )
    properties: Properties = Field(
        default_factory=dict,
        description="Any librdkafka property (SASL, TLS …), for producers and consumers. `sasl.password_file: FILE` "
        "reads sasl.password from a file; so for every property here and in spark_properties, registry.properties and "
        "apply.spark.",
    )
    spark_properties: Properties = Field(
        default_factory=dict,
        description="Properties of Spark's Java client, with or without the prefix `kafka.`.",
    )
    retries: int = Field(
        30,
        ge=0,
        description="Attempts to reach unavailable brokers, or a log that `thl produce` has not created yet, before "
        "exit with 4. Each takes up to ten seconds, 30 take five minutes. Attempts for the target: target.retries.",
    )


class Registry(Section):
    """A schema registry with Confluent's API. Only the producer uses it, once at start; readers do not need it."""

    url: SecretStr = Field(
        SecretStr(""),
        description="http(s)://host:port/path. The schema is registered as <topic>-value with compatibility "
        "FULL_TRANSITIVE, and messages use Confluent's wire format. Empty: Avro's single-object encoding. A log may "
        "contain both.",
    )
    url_file: Path | None = Field(None, description="File that holds the url.")
    properties: Properties = Field(
        default_factory=dict,
        description="Any property of confluent-kafka's SchemaRegistryClient (basic.auth.user.info, ssl.ca.location …).",
    )

    @model_validator(mode="before")
    @classmethod
    def _reads_files(cls, given: Any) -> Any:
        return read_secret_files(given, "url")
