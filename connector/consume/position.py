"""The position of a consumer, to be stored with the effects of its events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.errors import ConfigError
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno, ShardId


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPosition:
    """A resumable position between two events: a consumer that starts with it returns the event after it next.

    A program that stores `to_json()` in the transaction of an event's effect has each effect exactly once. With the
    position the consumer proves that the log is still the one it followed, and has lost no event that it returned.

    Args:
        service, log_id: the log.
        seqno, epoch: of the last event before the position. With `shards`, events of other shards count.
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
            shards = found.get("shards")
            return cls(
                service=str(found["service"]),
                log_id=LogId(str(found["log_id"])),
                seqno=Seqno(int(found["seqno"])),
                epoch=Epoch(int(found["epoch"])),
                offsets={int(partition): int(offset) for partition, offset in found["offsets"].items()},
                shards=None if shards is None else tuple(ShardId(str(shard)) for shard in shards),
                tails={int(partition): Seqno(int(seqno)) for partition, seqno in found.get("tails", {}).items()},
                floor=Seqno(int(found.get("floor", NO_SEQNO))),
                barrier=None if found.get("barrier") is None else Seqno(int(found["barrier"])),
                generation=int(found.get("generation", 1)),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"not a position of a consumer: {error}", text=text[:200]) from error
