"""What may happen in the ordinary course of things, as the rng say."""

from __future__ import annotations

from typing import Any

from connector.log.ids import UNKNOWN_SHARD
from tests.unit.log.model.simulation.scenario import Rng

Transactions = list[tuple[int, int, str, bool]]
XaSteps = list[tuple[str, bool, tuple[int, int, str, bool]]]  # xid, whether it commits, a transaction
Act = tuple[Any, ...]

SIZES = (1, 1, 2, 3, 5, 5)
SHARDS = ("shop", "stock", "users", UNKNOWN_SHARD)
KINDS = ("source", "xa", "producer", "producer", "applier", "applier", "broker", "overtake", "kill", "kill", "operator")


def transactions(rng: Rng, count: int) -> Transactions:
    """What each does, its size in fragments, its shard, whether it is filtered."""
    return [(rng.below(2), rng.one_of(SIZES), rng.one_of(SHARDS), rng.random() < 0.3) for _ in range(count)]


def acts(rng: Rng) -> list[Act]:
    """A few, of a choice of kinds: what is done to whom, and how much."""
    return [_act(rng) for _ in range(rng.between(1, rng.one_of((4, 8, 12))))]


def _act(rng: Rng) -> Act:
    kind = rng.one_of(KINDS)
    if kind == "source":
        return kind, transactions(rng, rng.between(1, 5))
    if kind == "xa":
        return kind, [(rng.one_of("abc"), rng.random() < 0.7, one) for one in transactions(rng, rng.between(1, 4))]
    if kind == "producer":
        return kind, rng.below(2), rng.one_of((1, 2, 3, rng.between(4, 12), rng.between(12, 40)))
    if kind == "applier":
        reads = [(rng.below(4), rng.between(1, 20)) for _ in range(rng.between(1, 8))]
        return kind, rng.below(2), reads, rng.one_of((0, 1, 3, 100, 100)), rng.one_of((None, None, None, 1, 2, 3, 5))
    if kind == "operator":
        return kind, rng.one_of(("skip", "rewind", "rewind", "undo")), rng.below(5)
    if kind == "broker":
        return kind, rng.below(4)
    return kind, rng.one_of(("producer", "applier")), rng.below(2)
