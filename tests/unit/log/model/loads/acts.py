"""What may happen in the ordinary course of things, as the rng says."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.log.model.loads.source import RowAct
from tests.unit.log.model.loads.target import Wrong
from tests.unit.log.model.simulation.scenario import Rng

KEYS: Final = 10
TARGETS: Final = ("lake", "pond")
ACTS: Final = (*("source",) * 4, *("producer",) * 5, "target", "target", "ask", "repair", "kill", "crash")


def row_acts(rng: Rng, count: int) -> list[RowAct]:
    acts: list[RowAct] = []
    for _ in range(count):
        key = rng.below(KEYS)
        kinds = rng.one_of((("set",), ("set",), ("delete",), ("move",), ("set", "move"), ("set", "move")))
        acts += [(kind, key, rng.below(KEYS), rng.below(60), rng.random() < 0.6) for kind in kinds]
    return acts


def _source_act(rng: Rng) -> tuple[Any, ...]:
    kind = rng.one_of(("execute", "execute", "execute", "execute", "show", "truncate"))
    if kind == "execute":
        return kind, row_acts(rng, rng.one_of((0, 1, 1, 2, 3))), rng.random() < 0.6
    if kind == "show":
        return kind, rng.below(3)
    return ("truncate",) if rng.random() < 0.4 else ("execute", row_acts(rng, 1), True)


def act(rng: Rng) -> tuple[Any, ...]:
    kind = rng.one_of(ACTS)
    if kind == "source":
        return kind, [_source_act(rng) for _ in range(rng.between(1, 3))]
    if kind == "producer":
        lives = rng.between(0, 12) if rng.random() < 0.2 else None
        meanwhile = [_source_act(rng) for _ in range(rng.one_of((0, 0, 1, 2, 3)))]
        if rng.random() < 0.05:
            meanwhile.append(("refuse",))
        return kind, rng.below(2), rng.one_of((1, 1, 2, 3)), lives, meanwhile
    if kind == "target":
        return kind, rng.below(2), rng.between(1, 12), rng.random() < 0.7
    if kind == "ask":
        return kind, rng.random() < 0.15, rng.one_of(((), (), *((one,) for one in TARGETS)))
    if kind == "repair":
        return kind, [rng.below(KEYS) for _ in range(rng.below(3))], rng.one_of(((), (), *((one,) for one in TARGETS)))
    return kind, rng.below(2)


def settings(rng: Rng) -> tuple[Any, ...]:
    return (
        rng.between(1, 4),
        rng.one_of((1, 2, 4, 12)),
        rng.random() < 0.3,
        rng.one_of((1, 1, 1, 2)),
        rng.one_of((1, 1, 2, 4)),
    )


def wrong(rng: Rng) -> list[Wrong]:
    """Rows that are wrong, too many, or missing; or all of them are wrong."""
    count = rng.one_of((0, 1, 3, None))
    if count is None:
        return [(key, (61, 61)) for key in range(KEYS + 3)]
    return [(rng.below(KEYS + 3), None if rng.random() < 0.3 else (61, 61)) for _ in range(count)]
