"""The options of the format `thl`, and its offsets."""

from __future__ import annotations

import json

import pytest

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import ConfigError
from connector.log.ids import Epoch, LogId, Seqno
from connector.spark.source.offset import LogOffset, PartitionOffset
from connector.spark.source.options import Options, as_options

PLACE = LogOffset(LogId("a" * 32), Seqno(41), Epoch(3), {0: PartitionOffset(77, Seqno(41)), 1: PartitionOffset(5)})
LOG = {"service": "shop", "kafka.bootstrap.servers": "h:1"}


def test_a_configuration_made_options_is_read_back() -> None:
    config = Config(
        service="shop", kafka=Kafka(bootstrap="h:1,i:2", topic_prefix="x", properties={"sasl.password": "p"})
    )
    assert Options.read(as_options(config)).config == config


def test_options_come_in_any_case() -> None:
    given = {name.upper(): value for name, value in {**LOG, "startingSeqno": "5", "maxEventsPerTrigger": "9"}.items()}
    found = Options.read(given)
    assert (found.start, found.most, found.config.kafka.bootstrap) == (5, 9, "h:1")


def test_an_offset_as_json_is_read_back() -> None:
    text = json.dumps(PLACE.as_json())
    assert LogOffset.from_json(json.loads(text)) == PLACE
    assert Options.read({**LOG, "startingOffsets": text}).start == PLACE


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ({"startingSeqno": "-1"}, "startingSeqno"),
        ({"startingSeqno": "1", "startingOffsets": "latest"}, "startingSeqno, startingOffsets"),
        ({"startingOffsets": "newest"}, "startingOffsets"),
        ({"startingOffsets": "{}"}, None),
        ({"startSeqno": "1"}, "startSeqno"),
        ({"topic_prefix": "/"}, "topic_prefix"),
    ],
)
def test_an_invalid_option_is_refused_by_name(more: dict[str, str], option: str | None) -> None:
    with pytest.raises(ConfigError) as refused:
        Options.read({**LOG, **more})
    assert refused.value.where.get("option") == option


def test_options_without_brokers_are_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        Options.read({"service": "shop"})
    assert refused.value.where["option"] == "kafka.bootstrap.servers"
