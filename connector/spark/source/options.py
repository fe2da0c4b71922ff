"""The options of the format `thl`: strings by name, as for Spark's own sources.

service                    the name of the log
kafka.bootstrap.servers    the brokers; any other `kafka.…` is a property of librdkafka
topic_prefix               the first part of the topics' names; thl by default
startingSeqno              the first event; by default the earliest
startingOffsets            earliest, latest (streams), or the JSON of `LogOffset.as_json`
endingSeqno                the last event (batch); by default the log's last
maxEventsPerTrigger        maximum number of events of a micro-batch (streams); 0: unlimited
newQuery                   true: the checkpoint is empty, so the first micro-batch can be bounded, too
splitMessages              number of Kafka offsets that one task reads
layout                     true: each row has the columns of its table
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.config.secret_files import present
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
    """Decoded options.

    Args:
        config: service and brokers.
        start: a seqno, an offset, "earliest" or "latest".
        end: the last seqno; None: the log's last.
        most: maximum number of events of a micro-batch; 0: unlimited.
        new: true if the stream has an empty checkpoint.
        split: number of Kafka offsets that one task reads.
        layout: true if rows have the columns of their tables.
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
        """Decode Spark's strings; names are case-insensitive.

        Raises:
            ConfigError: an unknown name, or an invalid value.
        """
        properties: dict[str, str] = {}
        named: dict[str, str] = {}
        for name, value in given.items():
            if name.lower().startswith(_KAFKA):
                properties[name.lower().removeprefix(_KAFKA)] = value
            elif name.lower() in _KNOWN:
                named[_KNOWN[name.lower()]] = value
            elif name.lower() != "path":
                raise ConfigError(
                    f"the format thl has no option {name}", hint=f"it has {', '.join(_KNOWN.values())}", option=name
                )
        bootstrap = properties.pop("bootstrap.servers", None)
        if bootstrap is None or "service" not in named:
            raise ConfigError(
                "the format thl needs the options service and kafka.bootstrap.servers",
                option=_BOOTSTRAP if bootstrap is None else "service",
            )
        kafka: dict[str, Any] = {"bootstrap": bootstrap, "properties": properties}
        if _PREFIX in named:
            kafka["topic_prefix"] = named[_PREFIX]
        try:
            config = Config(service=named["service"], kafka=Kafka(**kafka))
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigError(
                f"an option of the format thl is wrong: {first['msg']}", option=".".join(map(str, first["loc"]))
            ) from error
        return cls(
            config,
            _start(named),
            Seqno(_number(named, "endingSeqno")) if "endingSeqno" in named else None,
            _number(named, "maxEventsPerTrigger", 0),
            named.get("newQuery", "false").lower() == "true",
            max(1, _number(named, "splitMessages", SPLIT)),
            named.get("layout", "false").lower() == "true",
        )


def as_options(config: Config) -> dict[str, str]:
    """Return the options that name a configuration's log."""
    properties = {f"{_KAFKA}{name}": value for name, value in present(config.kafka.properties).items()}
    return {
        **properties,
        "service": config.service,
        _BOOTSTRAP: config.kafka.bootstrap,
        _PREFIX: config.kafka.topic_prefix,
    }


def _start(named: Mapping[str, str]) -> Seqno | LogOffset | str:
    if "startingSeqno" in named:
        if "startingOffsets" in named:
            raise ConfigError(
                "startingSeqno and startingOffsets exclude each other", option="startingSeqno, startingOffsets"
            )
        return Seqno(_number(named, "startingSeqno"))
    text = named.get("startingOffsets", "earliest")
    if text in ("earliest", "latest"):
        return text
    try:
        return LogOffset.from_json(json.loads(text))
    except ValueError as error:
        raise ConfigError(
            "startingOffsets is neither earliest, latest nor an offset", option="startingOffsets", value=text[:80]
        ) from error


def _number(named: Mapping[str, str], name: str, otherwise: int | None = None) -> int:
    text = named.get(name, "" if otherwise is None else str(otherwise))
    if not text.isascii() or not text.isdigit():
        raise ConfigError("an option of the format thl must be a number", option=name, value=text[:40])
    return int(text)
