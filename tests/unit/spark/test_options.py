"""The options of the format `thl`, and its offsets."""

from __future__ import annotations

import json

import pytest

from connector.config.model import Config, Kafka
from connector.errors import ConfigError
from connector.log.ids import Epoch, LogId, Seqno
from connector.spark.source.offset import LogOffset, PartitionOffset
from connector.spark.source.options import Options, as_options

PLACE = LogOffset(LogId("a" * 32), Seqno(41), Epoch(3), {0: PartitionOffset(77, Seqno(41)), 1: PartitionOffset(5)})
LOG = {"service": "shop", "kafka.bootstrap.servers": "h:1"}


def test_a_configuration_comes_back_from_its_options() -> None:
    config = Config(
        service="shop", kafka=Kafka(bootstrap="h:1,i:2", topic_prefix="x", properties={"sasl.password": "p"})
    )
    assert Options.read(as_options(config)).config == config


def test_options_come_in_any_case() -> None:
    given = {name.upper(): value for name, value in {**LOG, "startingSeqno": "5", "maxEventsPerTrigger": "9"}.items()}
    found = Options.read(given)
    assert (found.start, found.most, found.config.kafka.bootstrap) == (5, 9, "h:1")


def test_an_offset_is_json_and_comes_back() -> None:
    text = json.dumps(PLACE.as_json())
    assert LogOffset.from_json(json.loads(text)) == PLACE
    assert Options.read({**LOG, "startingOffsets": text}).start == PLACE


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"startingSeqno": "-1"}, "no number"),
        ({"startingSeqno": "1", "startingOffsets": "latest"}, "both"),
        ({"startingOffsets": "newest"}, "neither"),
        ({"startingOffsets": "{}"}, "not one of the format"),
        ({"startSeqno": "1"}, "no option startSeqno"),
        ({"topic_prefix": "/"}, "wrong"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Options.read({**LOG, **more})


def test_a_log_has_to_be_named() -> None:
    with pytest.raises(ConfigError, match="needs the options"):
        Options.read({"service": "shop"})
