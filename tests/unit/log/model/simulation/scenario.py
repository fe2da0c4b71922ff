"""Scenarios: each drawn from one number, run on a model, and made short when it ends badly.

A scenario is a list of steps, each the name of one of the model's rules and what was drawn for it. It is drawn while it
runs, for what may happen next depends on what has happened. Run again, a step that may not happen any more is passed
over; so every part of a scenario is a scenario, and a bad one is made short by leaving out what it does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Step = tuple[str, tuple[Any, ...]]

MOST_STEPS = 36
HOW_OFTEN = (0.0, 0.0, 0.1, 0.3, 1.0)
"""Beside the rule that goes on: in some scenarios a rule never happens, in some rarely, in some all the time.

A scenario's own trouble is never left out.
"""


class Rng(Random):
    """Cheap draws: those of `Random` take longer than most of what they decide."""

    def below(self, count: int) -> int:
        """0 … count - 1."""
        return int(self.random() * count)

    def between(self, first: int, last: int) -> int:
        """Both may come."""
        return first + int(self.random() * (last - first + 1))

    def one_of(self, values: Sequence[T]) -> T:
        """Each is as likely as the others."""
        return values[int(self.random() * len(values))]


@dataclass(frozen=True)
class Rule:
    """What may happen.

    Args:
        act: makes it happen to a service.
        draw: the other arguments of that.
        when: it may happen to a service now.
        troubles: to which it belongs; none: to all.
    """

    act: Callable[..., None]
    draw: Callable[[Rng], tuple[Any, ...]]
    when: Callable[[Any], Any]
    troubles: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.act.__name__


def rule(
    draw: Callable[[Rng], tuple[Any, ...]] = lambda _: (),
    *,
    when: Callable[[Any], Any] = lambda _: True,
    trouble: str | tuple[str, ...] = (),
) -> Callable[[T], T]:
    """Mark a function that may be a step of a scenario, with its `rule`."""

    def mark(act: Any) -> Any:
        act.rule = Rule(act, draw, when, (trouble,) if isinstance(trouble, str) else trouble)
        return act

    return mark


class Model(Protocol):
    """The model that scenarios are run on. Of its rules the first begins a scenario, the second goes on with it."""

    trouble: str
    service: Any
    rules: Sequence[Rule]

    def check(self) -> None:
        """Hold what must hold after every step."""

    def end(self) -> None:
        """Hold what must hold at the end."""


@dataclass(frozen=True)
class Ending:
    """A bad one. Two are the same if they failed at the same place, which is all that can be told of reasons."""

    steps: list[Step]
    error: Exception

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ending) and self._failed() == other._failed()

    __hash__ = None  # type: ignore[assignment]  # nobody needs it

    def _failed(self) -> tuple[type[Exception], object, int]:
        at = self.error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        return type(self.error), at and at.tb_frame.f_code, at.tb_lineno if at else 0


def ending(model: Model, rng: Rng) -> Ending | None:
    """Tell a scenario, drawn as it goes on.

    Returns:
        What went wrong, if anything did.
    """
    return _told(model, _drawn(model, rng))


def shortest(make: Callable[[], Model], bad: Ending) -> Ending:
    """The same bad ending of less: of every list in the scenario, whatever may be left out is.

    Args:
        make: a model, for each time that the scenario is run.
        bad: how it ended; its steps are changed.
    """
    before = ""
    while before != (before := repr(bad.steps)):
        for part in _lists(bad.steps):
            _thin(part, lambda: _told(make(), bad.steps) == bad)
    return _told(make(), bad.steps) or bad


def _drawn(model: Model, rng: Rng) -> Iterator[Step]:
    """Each step is drawn when the one before it has happened."""
    begins, goes_on, *others = model.rules
    yield begins.name, begins.draw(rng)
    sometimes = [(one, rng.one_of(HOW_OFTEN)) for one in others if not one.troubles]
    sometimes += [(one, rng.one_of(HOW_OFTEN[2:])) for one in others if model.trouble in one.troubles]
    sometimes = [(one, chance) for one, chance in sometimes if chance]
    for _ in range(rng.between(1, MOST_STEPS)):
        may = [(one, chance) for one, chance in sometimes if one.when(model.service)]
        chosen, at = goes_on, rng.random() * (1 + sum(chance for _, chance in may))
        for one, chance in may:
            at -= chance
            if at < 0:
                chosen = one
                break
        yield chosen.name, chosen.draw(rng)


def _told(model: Model, steps: Iterable[Step]) -> Ending | None:
    rules, service = {rule.name: rule for rule in model.rules}, model.service
    told: list[Step] = []
    try:
        for name, arguments in steps:
            if rules[name].when(service):
                told.append((name, arguments))
                rules[name].act(service, *arguments)
                model.check()
        model.end()
    except Exception as error:  # noqa: BLE001 - whatever it is, the scenario is to be shown
        return Ending(told, error)
    return None


def _lists(value: Any) -> Iterator[list[Any]]:
    """Every list in a scenario; an outer one, which may get shorter meanwhile, before those in it."""
    if isinstance(value, list):
        yield value
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _lists(one)


def _thin(part: list[Any], still: Callable[[], bool]) -> None:
    """Leave out of a list what may be left out: halves, quarters, … single elements."""
    count = len(part)
    while count:
        at = 0
        while at < len(part):
            left_out = part[at : at + count]
            del part[at : at + count]
            if not still():
                part[at:at] = left_out
                at += count
        count //= 2
