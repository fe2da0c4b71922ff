"""Configurations as services: those of one service are its targets."""

from __future__ import annotations

import pytest

from connector.config.kafka import Kafka
from connector.errors import ConfigError
from connector.serve.services import served_services
from tests.support.serving import config


def test_configurations_of_one_service_are_its_targets() -> None:
    given = [config("shop", "a"), config("crm"), config("shop", "b")]
    found = served_services([(None, one) for one in given])
    assert [(one.name, [target.name for target in one.targets]) for one in found] == [
        ("shop", ["a", "b"]),
        ("crm", ["target"]),
    ]


def test_same_target_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"target\.id a"):
        served_services([(None, config("shop", "a")), (None, config("shop", "a"))])


def test_same_service_on_other_brokers_is_refused() -> None:
    other = config("shop", "b").model_copy(update={"kafka": Kafka(bootstrap="elsewhere:9092")})
    with pytest.raises(ConfigError, match="different logs"):
        served_services([(None, config("shop", "a")), (None, other)])
