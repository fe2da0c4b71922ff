"""The log's position for those who may do without it: `thl verify`."""

from __future__ import annotations

import logging
from typing import Final

from connector.config.model import Config
from connector.errors import ConnectorError
from connector.kafka.log_reader import LogReader
from connector.log.transaction.position import PositionRecord

LOG: Final = logging.getLogger(__name__)
SECONDS: Final = 5.0  # for an answer of the brokers


class KafkaLog:
    """Implements `connector.verify.waiting.PublishedLog`.

    Args:
        config: names the log.
    """

    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def idle_seconds(self) -> float:
        """Seconds within which the log's position passes transactions that are not captured."""
        return self._config.publish.idle_position_seconds

    def position(self) -> PositionRecord | None:
        """The log's position; None: there is no log, or its brokers do not answer."""
        try:
            with LogReader(self._config, patience=SECONDS) as reader:
                return reader.position()
        except ConnectorError as error:
            LOG.debug("the log's position cannot be read", extra={"why": error.message})
            return None
