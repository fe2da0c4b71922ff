"""The position of a consumer, to be stored with the effects of its events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.errors import ConfigError
from connector.log.format.checked import WRONG, record
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno, ShardId


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPosition:
    """A resumable position between two events: a consumer that starts with it returns the event after it next.

    A program that stores `to_json()` in the transaction of an event's effect has each effect exactly once. With the
    position the consumer proves that the log is still the one it followed, and has lost no event that it returned.

    Args:
        service, log_id: the log.
        seqno, epoch: seqno and epoch of the last event before the position; events of other shards count.
        offsets: partition → the Kafka offset to read on from.
        shards: the shards to read; None: all.
        tails: with `shards`: partition → its last event before that offset.
        floor: with `shards`: events up to this one are skipped in every partition.
        barrier: with `shards`: the last returned barrier, None if there was none.
        generation: with `shards`: the version of the partition map that names them.
    """

    service: str
    log_id: LogId
    seqno: Seqno = NO_SEQNO
    epoch: Epoch = NO_EPOCH
    offsets: Mapping[int, int] = field(default_factory=dict)
    shards: tuple[ShardId, ...] | None = None
    tails: Mapping[int, Seqno] = field(default_factory=dict)
    floor: Seqno = NO_SEQNO
    barrier: Seqno | None = None
    generation: int = 1

    def to_json(self) -> str:
        """One line of text."""
        fields: dict[str, object] = {
            "service": self.service,
            "log_id": self.log_id,
            "seqno": self.seqno,
            "epoch": self.epoch,
            "offsets": {str(partition): offset for partition, offset in sorted(self.offsets.items())},
        }
        if self.shards is not None:
            fields["shards"] = list(self.shards)
            fields["tails"] = {str(partition): seqno for partition, seqno in sorted(self.tails.items())}
            fields["floor"] = self.floor
            fields["barrier"] = self.barrier
            fields["generation"] = self.generation
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ConsumerPosition:
        """Read the text of `to_json`.

        Raises:
            ConfigError: the text is not a position.
        """
        try:
            found = json.loads(text)
            return cls.of(
                found["service"],
                found,
                {int(partition): offset for partition, offset in found["offsets"].items()},
                {int(partition): seqno for partition, seqno in found.get("tails", {}).items()},
            )
        except WRONG as error:
            raise ConfigError(f"not a position of a consumer: {error}", text=text[:200]) from error

    @classmethod
    def of(
        cls, service: str, stored: Mapping[str, Any], offsets: Mapping[int, int], tails: Mapping[int, Seqno]
    ) -> ConsumerPosition:
        """Make a position of fields that were stored as JSON.

        Args:
            service: of the log.
            stored: the other fields, as `to_json` writes them.
            offsets, tails: as in the position.

        Raises:
            WRONG: a field is missing, or of another type.
        """
        shards = stored.get("shards")
        if not isinstance(shards, list | None):
            raise TypeError(f"shards is {str(shards)[:80]!r}")
        return record(
            cls(
                service=service,
                log_id=stored["log_id"],
                seqno=stored["seqno"],
                epoch=stored["epoch"],
                offsets=offsets,
                shards=None if shards is None else tuple(shards),
                tails=tails,
                floor=stored.get("floor", NO_SEQNO),
                barrier=stored.get("barrier"),
                generation=stored.get("generation", 1),
            )
        )
