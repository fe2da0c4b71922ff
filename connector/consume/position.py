"""How far a consumer is: small, and to be kept where what it made of the events is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.errors import ConfigError
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno, ShardId


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPosition:
    """A place between two events, resumable: given back as `start`, the event that is given next is the one after it.

    Whoever writes `to_json()` in the same transaction as what the event led to, has each event's effect exactly once.
    The consumer proves with it that the log is still the one it followed, and has lost nothing of what it took.

    Args:
        service, log_id: whose log.
        seqno, epoch: of the last event that is behind it. With `shards`, of the last one that was passed over, too.
        offsets: partition → the Kafka offset to read on from.
        shards: which alone are read; None: all.
        tails: with `shards`: partition → its last event before that offset.
        floor: with `shards`: nothing up to this event is wanted, whichever partition it may be in.
        barrier: with `shards`: the last barrier that was given, None where none was.
        generation: with `shards`: by which of the log's rules they have their names.
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
        told: dict[str, object] = {
            "service": self.service,
            "log_id": self.log_id,
            "seqno": self.seqno,
            "epoch": self.epoch,
            "offsets": {str(partition): offset for partition, offset in sorted(self.offsets.items())},
        }
        if self.shards is not None:
            told["shards"] = list(self.shards)
            told["tails"] = {str(partition): seqno for partition, seqno in sorted(self.tails.items())}
            told["floor"] = self.floor
            told["barrier"] = self.barrier
            told["generation"] = self.generation
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ConsumerPosition:
        """Read what `to_json` wrote.

        Raises:
            ConfigError: it did not write this.
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
            raise ConfigError(f"this is no position of a consumer: {error}", text=text[:200]) from error
