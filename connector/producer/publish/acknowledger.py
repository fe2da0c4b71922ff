"""The interface between the publisher and a source whose commits wait until Kafka has them."""

from __future__ import annotations

from typing import Protocol

from connector.log.transaction.position import PositionRecord


class Acknowledger(Protocol):
    """Tells the source how far Kafka has its log.

    Called by the thread that goes online, then by the publisher's thread.
    """

    def acknowledge(self, position: PositionRecord) -> None:
        """Acknowledge everything before a position that is committed to Kafka; does not block.

        A lost connection is no error here: the thread that reads the source reports it, and the next connection begins
        with the newest acknowledgement.
        """
