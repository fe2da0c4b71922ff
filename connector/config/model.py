"""The configuration as one typed model: `Config`, with a section for each part.

A YAML file, over it the environment (`THL_SOURCE__HOST`), over it flags (`--set source.host=…`). The reference page and
the environment names are generated from the fields: each field is documented here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import Field, SecretStr, model_validator

from connector.config.apply import LOCAL, Apply, Target
from connector.config.kafka import Kafka, Registry
from connector.config.publish import Publish
from connector.config.relay import Relay
from connector.config.section import Name, Section
from connector.config.serve import Serve
from connector.config.source import Source
from connector.redaction import remember, secrets_of

# Old name of a field → its name. The old name still works in files, the environment and --set, with a warning.
RENAMED: Final = {
    ("source", "heartbeat"): "dump_heartbeat",
    ("source", "piece_bytes"): "batch_bytes",
    ("target", "transaction_columns"): "metadata_columns",
}


class Metrics(Section):
    """Prometheus metrics of `thl produce`, `thl apply` and `thl verify --every`: see docs/metrics.md."""

    port: int = Field(0, ge=0, le=65535, description="Port of the metrics server; 0: no metrics server.")
    host: str = Field(
        "127.0.0.1",
        description="Address on which the metrics server listens; 0.0.0.0 or ::, all interfaces. It has neither TLS "
        "nor authentication.",
    )
    tables: int = Field(
        100,
        ge=0,
        le=10_000,
        description="Tables that have metrics of their own; of later ones there is the sum. 0: no metrics of tables.",
    )
    old_names: bool = Field(
        False, description="Also serve renamed metrics under their old names, which docs/metrics.md lists."
    )


class Config(Section):
    """The whole configuration."""

    service: Name = Field("default", description="Name of the log; topics and the target's position carry it.")
    source: Source = Field(default_factory=Source)
    kafka: Kafka = Field(default_factory=Kafka)
    registry: Registry = Field(default_factory=Registry)
    publish: Publish = Field(default_factory=Publish)
    apply: Apply = Field(default_factory=Apply)
    target: Target = Field(default_factory=Target)
    relay: Relay = Field(default_factory=Relay)
    metrics: Metrics = Field(default_factory=Metrics)
    serve: Serve = Field(default_factory=Serve)

    @model_validator(mode="after")
    def _a_relay_needs_a_local_master(self) -> Config:
        if self.relay.dir is not None and not LOCAL.fullmatch(self.apply.master):
            raise ValueError(f"a relay needs apply.master local[N], not {self.apply.master}; relay.dir empty: no relay")
        return self

    @model_validator(mode="after")
    def _remembers_secrets(self) -> Config:
        remember(_secrets(self))
        return self

    @property
    def topic(self) -> str:
        """The event topic."""
        return f"{self.kafka.topic_prefix}.{self.service}"

    @property
    def control_topic(self) -> str:
        """The control topic."""
        return f"{self.topic}.control"

    @property
    def position_topic(self) -> str:
        """The position topic."""
        return f"{self.topic}.position"

    @property
    def prepared_topic(self) -> str:
        """The topic of prepared XA transactions."""
        return f"{self.topic}.prepared"


def _secrets(section: Section) -> Iterator[str]:
    """Return every secret of a section."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        match value:
            case Section():
                yield from _secrets(value)
            case SecretStr():
                yield from _in_secret(value)
            case dict():
                for key, text in value.items():
                    yield from secrets_of(key, str(text))
            case tuple():
                for item in value:
                    if isinstance(item, SecretStr):
                        yield from _in_secret(item)


def _in_secret(value: SecretStr) -> Iterator[str]:
    """Return a secret as a whole; of an address only its password."""
    text = value.get_secret_value()
    if "://" not in text:
        yield text
    yield from secrets_of("", text)
