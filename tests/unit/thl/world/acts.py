"""What may happen in the ordinary course of things, each drawn as one number.

So that many things happen in a run: drawing every detail by itself takes longer than all the rest. Hypothesis
shortens the story all the same, and prints the acts, not the numbers.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from connector.thl.words import UNKNOWN_SHARD

Transactions = list[tuple[int, int, str, bool]]
Act = tuple[Any, ...]

_NUMBER = st.integers(0, 2**32 - 1)


def _transactions(rng: Random, count: int) -> Transactions:
    """What each does, its size in fragments, its shard, whether it is filtered."""
    return [
        (
            rng.randrange(2),
            rng.choice((1, 1, 2, 3, 5, 5)),
            rng.choice(("shop", "stock", "users", UNKNOWN_SHARD)),
            rng.random() < 0.3,
        )
        for _ in range(count)
    ]


def _act(number: int) -> Act:
    rng = Random(number)
    kind = rng.choice(
        ("source", "xa", "producer", "producer", "applier", "applier", "broker", "overtake", "kill", "kill", "operator")
    )
    which = rng.randrange(2)
    if kind == "source":
        return kind, _transactions(rng, rng.randint(1, 5))
    if kind == "xa":
        return kind, [(rng.choice("abc"), rng.random() < 0.7, one) for one in _transactions(rng, rng.randint(1, 4))]
    if kind == "producer":
        return kind, which, rng.choice((1, 2, 3, rng.randint(4, 12), rng.randint(12, 40)))
    if kind == "applier":
        reads = [(rng.randrange(4), rng.randint(1, 20)) for _ in range(rng.randint(1, 8))]
        return kind, which, reads, rng.choice((0, 1, 3, 100, 100))
    if kind == "operator":
        return kind, rng.choice(("skip", "rewind", "rewind")), rng.randrange(5)
    if kind == "broker":
        return kind, rng.randrange(4)
    return kind, rng.choice(("producer", "applier")), which


transactions = _NUMBER.map(lambda number: _transactions(Random(number), 1 + number % 8))
few_transactions = _NUMBER.map(lambda number: _transactions(Random(number), 1 + number % 2))
many_transactions = _NUMBER.map(lambda number: _transactions(Random(number), 10 + number % 11))
acts = st.lists(_NUMBER.map(_act), min_size=1, max_size=12)
