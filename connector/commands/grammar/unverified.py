"""Logs a warning for each password that is sent without TLS or to an unverified server."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connector.config.model import Config

LOG: Final = logging.getLogger("connector.passwords")

End = Literal["source", "replicas", "kafka", "registry", "target"]


def warn_of_unverified(config: Config, *ends: End) -> None:
    """Log a warning for each of these ends that gets a password without TLS or unverified, except on this machine.

    Raises:
        ConfigError: target.url is none.
    """
    for end in ends:
        for why in _reasons(config, end):
            LOG.warning(why, extra={"service": config.service})


def _reasons(config: Config, end: End) -> Iterator[str]:
    """Yield the reasons for one end; imports only its modules, as a producer starts without the target's drivers."""
    match end:
        case "source":
            from connector.mysql.server import connection

            reasons: Iterator[str] = iter([connection.unverified(config.source)])
        case "replicas":
            from connector.mysql.server import replica

            reasons = replica.unverified_replicas(config.publish.wait_for, config.source)
        case "kafka":
            from connector.kafka import client

            reasons = client.unverified(config.kafka)
        case "registry":
            from connector.kafka import registry

            reasons = iter([registry.unverified(config.registry)])
        case "target":
            from connector.targets import open as targets

            reasons = iter([targets.unverified(config.target)])
    return (why for why in reasons if why)
