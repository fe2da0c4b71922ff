"""What an encoder is told: how large things may be, and where numbering goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connector.thl.words import Epoch, Seqno


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large things may be, in bytes; see `connector.config.Publish` and `Kafka`."""

    fragment: int
    shard: int
    message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """Where numbering goes on: what going online, or going back, has decided.

    Args:
        epoch: the epoch of what follows.
        next_seqno: of the next event.
        tails: partition → its last finished event.
        last_barrier: the last finished barrier.
    """

    epoch: Epoch
    next_seqno: Seqno
    tails: Mapping[int, Seqno]
    last_barrier: Seqno
