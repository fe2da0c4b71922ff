"""Starts a worker and observes it until it has processed a whole backlog."""

from __future__ import annotations

from collections.abc import Mapping

from connector.demo.stage import Worker
from tests.bench.course import Course, Look
from tests.bench.gauges import Gauges
from tests.bench.meter import Meter
from tests.bench.site import CLOCK

PUBLISHED = "thl_published_rows_total"
APPLIED = "thl_applied_rows_total"
PRODUCER = {"producer": "*"}
APPLIER = {"driver": "python* -m connector apply *", "JVM": "java *", "workers": "python* -m connector.spark.*"}
LOOK = 0.1  # seconds
PATIENCE = 240.0  # seconds without a further row


class Stuck(Exception):
    """Raised if a worker counts no further rows."""


def drain(
    servers: Mapping[str, Meter],
    worker: Worker,
    gauges: Gauges,
    *,
    counter: str,
    goal: int,
    parts: Mapping[str, str],
    before: int = 0,
) -> Course:
    """Start `worker`, observe it until `counter` has reached `goal`, and end it.

    Args:
        servers: what is measured, too, also if another process started them.
        worker, gauges: not started.
        counter: a metric of the worker.
        goal: rows.
        parts: members of the worker's family: name → their program; see `Meter`.
        before: rows of the goal that come first and are not to be measured.

    Raises:
        SandboxError: the worker ended.
        Stuck: nothing has moved for a long time.
    """
    zero = {name: meter.read() for name, meter in servers.items()}
    worker.start()
    ours = {name: Meter(worker.pid, program) for name, program in parts.items()}
    looks: list[Look] = []
    moved = CLOCK.monotonic()
    counted = -1
    while counted < goal:
        worker.check()
        rows = int(gauges.value(counter))
        now = CLOCK.monotonic()  # a busy worker answers late, with what it then has
        if rows > counted:
            counted, moved = rows, now
        elif now - moved > PATIENCE:
            raise Stuck(f"{worker.name} counts {counted} of {goal} rows\n{worker.log_tail()}")
        if rows > 0:
            used = {name: meter.read() for name, meter in ours.items()}
            used |= {name: meter.read() - zero[name] for name, meter in servers.items()}
            looks.append(Look(now, rows, used))
        if counted < goal:
            CLOCK.sleep(LOOK)
    worker.stop()
    return Course(looks, before, frozenset(parts))
