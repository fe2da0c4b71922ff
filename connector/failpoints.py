"""Named points at which the fault tests kill or stop a process; `point` does nothing unless the environment names one.

`THL_CRASH_POINT=produce.before_commit:3` in the environment sends SIGKILL to the process itself the third time it
passes that point; `THL_STOP_POINT` sends SIGSTOP in the same way. This module alone reads these two.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Final

from connector.errors import ConfigError

PRODUCE: Final = (
    "produce.after_fence",  # older producers are fenced, nothing is read
    "produce.after_read_log",  # control and position are read
    "produce.before_epoch_commit",  # epoch and markers are produced, not committed
    "produce.after_epoch_commit",
    "produce.before_commit",  # fragments and position are produced, not committed
    "produce.after_commit",
    "produce.mid_event_before_commit",  # the same, with an event that is not finished
    "produce.mid_event_after_commit",
    "produce.prepared_before_commit",  # the same, with an XA PREPARE, COMMIT or ROLLBACK
    "produce.prepared_after_commit",
    "produce.snapshot_before_commit",  # the same, within an initial load
    "produce.snapshot_after_commit",
    "produce.snapshot_end_before_commit",  # the same, with the end of the initial load
    "produce.snapshot_end_after_commit",
)
APPLY: Final = (
    "apply.after_claim",
    "apply.after_handshake",
    "apply.before_stage",
    "apply.after_stage",
    "apply.before_commit",
    "apply.after_commit",
)
TARGET: Final = (
    "target.after_claim",
    "target.mid_stage",
    "target.before_merge",
    "target.before_position",
    "target.before_commit",
    "target.after_commit",
)
ROWS: Final = (
    "rows.before_commit",  # messages and progress are produced, not committed
    "rows.after_commit",
)
WRITERS: Final = (
    "target.before_intent",  # several writers have merged their parts, none has committed
    "target.after_intent",
    "target.before_channel",
    "target.after_channel",
)
LOADS: Final = (
    "load.before_position",  # a round's view is fixed, its position is not
    "load.before_rows",  # the stream has reached a round's position
    "load.mid_round",  # rows of a round are queued, how far they are is not
    "apply.before_edge",  # a target has all of a load's edge, or of a repair, and none of it is committed
    "apply.after_edge",
)
REPAIR: Final = (
    "repair.before_request",  # tables differ, and nothing is asked for
    "repair.after_request",
)
QUARANTINE: Final = ("apply.after_exclude",)  # a refused table is excluded, and nothing of that is committed
RELAY: Final = (
    "relay.after_write",  # records are written, perhaps of an unfinished event, and not yet on the disk
    "relay.after_sync",  # everything of the next commit is on the disk
)
INDEXES: Final = ("target.before_index",)  # an index of `target.indexes` is missing
DDL: Final = (
    "target.before_ddl",  # of MySQL: a statement is recorded, and not executed
    "target.after_ddl",  # it is executed, and the position is not committed
)
POINTS: Final = PRODUCE + APPLY + TARGET
"""Every point on the way from source to target. The target's points lie between those of `apply` around its calls."""


def _nothing(name: str) -> None:
    """Pass a point that the environment does not name."""


def _armed(environ: dict[str, str] | os._Environ[str]) -> Callable[[str], None]:
    """The `point` of this process.

    Raises:
        ConfigError: an unknown point, or a count that is no number.
    """
    armed: dict[str, list[tuple[int, signal.Signals]]] = {}
    for variable, sent in (("THL_CRASH_POINT", signal.SIGKILL), ("THL_STOP_POINT", signal.SIGSTOP)):
        text = environ.get(variable)
        if text:
            name, _, count = text.partition(":")
            known = POINTS + ROWS + WRITERS + LOADS + REPAIR + QUARANTINE + RELAY + INDEXES + DDL
            if name not in known or not (count or "1").isdecimal():
                raise ConfigError(f"{variable}={text} names no failpoint", hint="one of " + ", ".join(known))
            armed.setdefault(name, []).append((int(count or "1"), sent))
    if not armed:
        return _nothing
    passed = dict.fromkeys(armed, 0)

    def point(name: str) -> None:
        """Count the passage, and send the signal at the named one."""
        if name not in armed:
            return
        passed[name] += 1
        for count, sent in armed[name]:
            if passed[name] == count:
                os.kill(os.getpid(), sent)

    return point


point: Final = _armed(os.environ)
"""Pass the point of this name."""
