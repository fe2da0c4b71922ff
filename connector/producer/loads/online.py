"""The part of an online producer that loads use: `connector.producer.going_online.Online` has it."""

from __future__ import annotations

from typing import Protocol

from connector.log.epochs.control import ControlState
from connector.log.transaction.definition import Definitions
from connector.log.transaction.layout import TableName
from connector.producer.encode.encoder import Encoder
from connector.producer.publish.publisher import Publisher
from connector.producer.publish.queue import Work


class FollowedTables(Protocol):
    """The stream, which follows the definitions of the source's tables."""

    tables: Definitions | None


class OnlineLog(Protocol):
    """A log to which a producer writes.

    Its control state is replaced as a whole when an initial load begins; the stream gets the tables of that load.
    """

    control: ControlState

    @property
    def publisher(self) -> Publisher:
        """Writes to Kafka."""

    @property
    def encoder(self) -> Encoder:
        """Numbers and encodes events."""

    @property
    def stream(self) -> FollowedTables:
        """Reads the source."""

    def read_again(self, table: TableName) -> bool:
        """True once a load that has read all of a table has to read it once more; the table by its published name."""

    def put(self, work: Work) -> None:
        """Queue work of the encoder, with the counts of its tables."""
