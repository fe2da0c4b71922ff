"""What may happen in the ordinary course of things, as the dice say."""

from __future__ import annotations

from typing import Any

from connector.log.ids import UNKNOWN_SHARD
from tests.unit.log.model.world.story import Dice

Transactions = list[tuple[int, int, str, bool]]
Act = tuple[Any, ...]

SIZES = (1, 1, 2, 3, 5, 5)
SHARDS = ("shop", "stock", "users", UNKNOWN_SHARD)
KINDS = ("source", "xa", "producer", "producer", "applier", "applier", "broker", "overtake", "kill", "kill", "operator")


def transactions(dice: Dice, count: int) -> Transactions:
    """What each does, its size in fragments, its shard, whether it is filtered."""
    return [(dice.below(2), dice.one_of(SIZES), dice.one_of(SHARDS), dice.random() < 0.3) for _ in range(count)]


def acts(dice: Dice) -> list[Act]:
    """A few, of a choice of kinds: what is done to whom, and how much."""
    return [_act(dice) for _ in range(dice.between(1, dice.one_of((4, 8, 12))))]


def _act(dice: Dice) -> Act:
    kind = dice.one_of(KINDS)
    if kind == "source":
        return kind, transactions(dice, dice.between(1, 5))
    if kind == "xa":
        return kind, [(dice.one_of("abc"), dice.random() < 0.7, one) for one in transactions(dice, dice.between(1, 4))]
    if kind == "producer":
        return kind, dice.below(2), dice.one_of((1, 2, 3, dice.between(4, 12), dice.between(12, 40)))
    if kind == "applier":
        reads = [(dice.below(4), dice.between(1, 20)) for _ in range(dice.between(1, 8))]
        return kind, dice.below(2), reads, dice.one_of((0, 1, 3, 100, 100))
    if kind == "operator":
        return kind, dice.one_of(("skip", "rewind", "rewind")), dice.below(5)
    if kind == "broker":
        return kind, dice.below(4)
    return kind, dice.one_of(("producer", "applier")), dice.below(2)
