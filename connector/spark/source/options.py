"""What the format `thl` is told, in the way of Spark's sources: texts by name.

service                    the name of the log
kafka.bootstrap.servers    the brokers; any other `kafka.…` is a property of librdkafka
topic_prefix               thl, where the topics are not called otherwise
startingSeqno              the first event that is wanted; earliest where nothing is said
startingOffsets            earliest, latest (streams), or what `LogOffset.as_json` gives, as text
endingSeqno                the last event that is wanted (batch); where nothing is said, the log's last
maxEventsPerTrigger        how many events a micro-batch has at most (streams); 0: as many as there are
newQuery                   true: the checkpoint is empty, so the first micro-batch can be bounded, too
splitMessages              how many offsets one task reads
layout                     true: each row tells the columns of its table
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from connector.config.model import Config, Kafka
from connector.errors import ConfigError
from connector.log.ids import Seqno
from connector.spark.source.offset import LogOffset

_KAFKA: Final = "kafka."
_BOOTSTRAP: Final = "kafka.bootstrap.servers"
_PREFIX: Final = "topic_prefix"
SPLIT: Final = 50_000

_KNOWN: Final = {
    name.lower(): name
    for name in (
        "service", _PREFIX, "startingSeqno", "startingOffsets", "endingSeqno", "maxEventsPerTrigger", "newQuery",
        "splitMessages", "layout",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """What is read, and how.

    Args:
        config: service and brokers.
        start: a seqno, a place, "earliest" or "latest".
        end: the last seqno wanted, None: the log's last.
        most: events of a micro-batch, 0: no bound.
        new: a stream has no checkpoint that it goes on from.
        split: offsets that one task reads.
        layout: rows tell the columns of their tables.
    """

    config: Config
    start: Seqno | LogOffset | str = "earliest"
    end: Seqno | None = None
    most: int = 0
    new: bool = False
    split: int = SPLIT
    layout: bool = False

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Options:
        """From Spark's texts, whose names come in any case.

        Raises:
            ConfigError: a name that is not known, or a value that cannot be.
        """
        properties: dict[str, str] = {}
        told: dict[str, str] = {}
        for name, value in given.items():
            if name.lower().startswith(_KAFKA):
                properties[name.lower().removeprefix(_KAFKA)] = value
            elif name.lower() in _KNOWN:
                told[_KNOWN[name.lower()]] = value
            elif name.lower() != "path":
                raise ConfigError(f"the format thl has no option {name}", hint=f"it has {', '.join(_KNOWN.values())}")
        bootstrap = properties.pop("bootstrap.servers", None)
        if bootstrap is None or "service" not in told:
            raise ConfigError("the format thl needs the options service and kafka.bootstrap.servers")
        kafka: dict[str, Any] = {"bootstrap": bootstrap, "properties": properties}
        if _PREFIX in told:
            kafka["topic_prefix"] = told[_PREFIX]
        try:
            config = Config(service=told["service"], kafka=Kafka(**kafka))
        except ValidationError as error:
            raise ConfigError(f"an option of the format thl is wrong: {error.errors()[0]['msg']}") from error
        return cls(
            config,
            _start(told),
            Seqno(_number(told, "endingSeqno")) if "endingSeqno" in told else None,
            _number(told, "maxEventsPerTrigger", 0),
            told.get("newQuery", "false").lower() == "true",
            max(1, _number(told, "splitMessages", SPLIT)),
            told.get("layout", "false").lower() == "true",
        )


def as_options(config: Config) -> dict[str, str]:
    """The options that name a log, from a configuration."""
    properties = {f"{_KAFKA}{name}": value for name, value in config.kafka.properties.items()}
    return {
        **properties,
        "service": config.service,
        _BOOTSTRAP: config.kafka.bootstrap,
        _PREFIX: config.kafka.topic_prefix,
    }


def _start(told: Mapping[str, str]) -> Seqno | LogOffset | str:
    if "startingSeqno" in told:
        if "startingOffsets" in told:
            raise ConfigError("startingSeqno and startingOffsets are both given")
        return Seqno(_number(told, "startingSeqno"))
    text = told.get("startingOffsets", "earliest")
    if text in ("earliest", "latest"):
        return text
    try:
        return LogOffset.from_json(json.loads(text))
    except ValueError as error:
        raise ConfigError(f"startingOffsets is neither earliest, latest nor an offset: {text[:80]}") from error


def _number(told: Mapping[str, str], name: str, otherwise: int | None = None) -> int:
    text = told.get(name, "" if otherwise is None else str(otherwise))
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"{name} is no number: {text[:40]!r}")
    return int(text)
