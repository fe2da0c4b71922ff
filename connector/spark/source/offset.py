"""Spark's offset of the format `thl`, with the ids that verify it against the log's history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connector.errors import ConfigError
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.position import TargetPosition


@dataclass(frozen=True, slots=True)
class PartitionOffset:
    """The offset of a partition after an event.

    Args:
        offset: every later event has this Kafka offset or a larger one.
        tail: the partition's last event before it, NO_SEQNO if none.
    """

    offset: int
    tail: Seqno = NO_SEQNO


@dataclass(frozen=True, slots=True)
class LogOffset:
    """The offset after one event of a log.

    Args:
        log_id: the ID of the log.
        seqno, epoch: the event; NO_SEQNO and NO_EPOCH before the first.
        partitions: the offset of each partition.
    """

    log_id: LogId
    seqno: Seqno
    epoch: Epoch
    partitions: Mapping[int, PartitionOffset]

    def as_json(self) -> dict[str, Any]:
        """Return the offset as JSON, for Spark's checkpoint."""
        return {
            "log_id": self.log_id,
            "seqno": self.seqno,
            "epoch": self.epoch,
            "partitions": {str(n): {"offset": at.offset, "tail": at.tail} for n, at in self.partitions.items()},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> LogOffset:
        """Decode JSON.

        Raises:
            ConfigError: the JSON is not an offset of this format.
        """
        try:
            partitions = {
                int(number): PartitionOffset(int(at["offset"]), Seqno(int(at["tail"])))
                for number, at in found["partitions"].items()
            }
            return cls(LogId(found["log_id"]), Seqno(int(found["seqno"])), Epoch(int(found["epoch"])), partitions)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(
                "an offset is not one of the format thl",
                hint="does the checkpoint belong to another query?",
                found=str(dict(found))[:200],
            ) from error

    def position(self, service: str) -> TargetPosition:
        """Return the offset as a target's position, for the handshake."""
        return TargetPosition(
            service=service,
            log_id=self.log_id,
            seqno=self.seqno,
            epoch=self.epoch,
            offsets={number: at.offset for number, at in self.partitions.items()},
        )
