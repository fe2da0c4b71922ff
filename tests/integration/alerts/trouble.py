"""A trouble of a service, and the alerts that it fires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.integration.alerts.fleet import Fleet

Make = Callable[[Fleet], Iterator[None]]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A trouble, which is there while its context lasts, and is mended by its end.

    Args:
        name: in words.
        made: makes it.
        fires: the alerts that it fires.
        besides: alerts that may fire, too, because it lasts, or because a process has to end for it.
    """

    name: str
    made: Callable[[Fleet], AbstractContextManager[None]]
    fires: tuple[str, ...]
    besides: tuple[str, ...]


class Troubles(list[Trouble]):
    """Troubles in the order in which they are made."""

    def fires(self, *alerts: str, besides: tuple[str, ...] = ()) -> Callable[[Make], Make]:
        """Declare what the decorated trouble fires."""

        def declare(make: Make) -> Make:
            self.append(Trouble(make.__name__, contextmanager(make), alerts, besides))
            return make

        return declare
