"""Observes a peer until it has processed a whole backlog, as the connector's workers are observed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.bench.course import Course, Look
from tests.bench.meter import Meter
from tests.bench.peers.peer import Unavailable
from tests.bench.site import CLOCK, Site

_LOOK = 0.1
_CHECK = 2.0
_PATIENCE = 90.0


def watch(
    place: Site,
    meters: Mapping[str, Meter],
    counted: Callable[[], int],
    goal: int,
    check: Callable[[], None],
    *,
    limit: float = float("inf"),
) -> Course:
    """Observe from the first counted row to the last.

    Args:
        place: site whose servers are measured, too.
        meters: name → of the peer's processes.
        counted: rows until now.
        goal: all of them.
        check: raises when the peer does not run any more.
        limit: seconds after the first row when it is enough.

    Raises:
        Unavailable: nothing moves.
    """
    servers = place.servers()
    zero = {name: meter.read() for name, meter in servers.items()}
    looks: list[Look] = []
    rows, moved, checked = 0, CLOCK.monotonic(), CLOCK.monotonic()
    while rows < goal and not (looks and looks[-1].at - looks[0].at > limit):
        now, before, rows = CLOCK.monotonic(), rows, min(counted(), goal)
        if rows > before:
            moved = now
        elif now - moved > _PATIENCE:
            raise Unavailable(f"{rows} of {goal} rows have come, and no more for {_PATIENCE:.0f} s")
        if now - checked > _CHECK:
            check()
            checked = now
        if rows > 0:
            used = {name: meter.read() for name, meter in meters.items()}
            used |= {name: meter.read() - zero[name] for name, meter in servers.items()}
            looks.append(Look(now, rows, used))
        if rows < goal:
            CLOCK.sleep(_LOOK)
    return Course(looks)
