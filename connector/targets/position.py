"""The position of a service on a target, for those that look at it from outside: each target's `progress` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from connector.log.transaction.position import Intent

COLUMNS: Final = "log_id, seqno, epoch, event_id, gtid_set, consistent, commit_time, applied_at, token"
"""Of `thl_position`, in the order of `target_row`."""

SAME_TABLE: Final = "service = {0} AND lower(schema_name) = lower({0}) AND lower(table_name) = lower({0})"
"""The condition that finds a table in `thl_tables`, whose name some sources keep in lower case; {0}: a placeholder."""

INCONSISTENT_BECAUSE: Final = """
SELECT service, 'rewind' AS because FROM {0}thl_rewound
UNION ALL SELECT p.service, 'load' FROM {0}thl_position p LEFT JOIN {0}thl_rewound r ON r.service = p.service
  WHERE NOT p.consistent AND r.service IS NULL
UNION ALL SELECT DISTINCT service, 'quarantine' FROM {0}thl_excluded
UNION ALL SELECT DISTINCT service, 'skipped' FROM {0}thl_inconsistent"""
"""The query of the view `thl_inconsistent_because` on a target with one writer; {0}: precedes the names of tables."""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """The row of `thl_position`, and what belongs to it; times in µs since 1970 UTC.

    Args:
        reasons: of `connector.log.transaction.position.CAUSES`.
        channels: the last seqno that each of several writers has committed, -1 before its first.
        intent: the commit of several writers that is not complete.
        unreadable: tables that the account may not read.
        applier: an applier has a session with the target; None: not known.
    """

    log_id: str
    seqno: int
    epoch: int
    event_id: str
    gtid_set: str | None
    consistent: bool
    commit_time: int
    applied_at: int
    token: int
    reasons: tuple[str, ...] = ()
    channels: tuple[int, ...] = ()
    intent: Intent | None = None
    unreadable: tuple[str, ...] = ()
    applier: bool | None = None


def target_row(found: Any, reasons: Sequence[tuple[Any, ...]], **further: Any) -> TargetRow:
    """The row of a target.

    Args:
        found: the values of `COLUMNS`.
        reasons: of `thl_inconsistent_because`, one in each row.
        further: other fields of `TargetRow`.
    """
    log_id, seqno, epoch, event_id, gtid_set, consistent, *times_and_token = found
    row = TargetRow(log_id, seqno, epoch, event_id, gtid_set, bool(consistent), *times_and_token)
    return replace(row, reasons=tuple(str(word) for (word,) in reasons), **further)
