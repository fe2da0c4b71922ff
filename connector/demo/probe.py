"""Reads the target's state while the applier writes it, with an ordinary SQLite connection."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TargetProbe:
    """The state of the target at one time.

    Args:
        seqno: seqno of the last applied event; -1 before the first.
        consistent: false during the initial load.
        gtid_set: the applied GTIDs.
        rows: row changes applied so far.
    """

    seqno: int
    consistent: bool
    gtid_set: str
    rows: int

    @property
    def loaded(self) -> bool:
        """True once the initial load is complete."""
        return self.seqno >= 0 and self.consistent


_NOTHING = TargetProbe(-1, False, "", 0)


def probe(target: Path) -> TargetProbe:
    """Read the target's position; its seqno is -1 while the target has no tables."""
    if not target.exists():
        return _NOTHING
    with closing(sqlite3.connect(f"file:{target}?mode=ro", uri=True, timeout=30)) as connection:
        try:
            found = connection.execute("SELECT seqno, consistent, gtid_set FROM thl_position").fetchone()
            rows = connection.execute("SELECT coalesce(sum(rows), 0) FROM thl_applied").fetchone()[0]
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return _NOTHING
            raise
    return _NOTHING if found is None else TargetProbe(found[0], bool(found[1]), found[2] or "", rows)


def latencies(target: Path, since: int, until: int) -> list[float]:
    """Milliseconds from the source's commit to the target's, ascending, of events committed between two times (µs)."""
    with closing(sqlite3.connect(f"file:{target}?mode=ro", uri=True, timeout=30)) as connection:
        found = connection.execute(
            "SELECT (applied_at - commit_time) / 1000.0 FROM thl_applied WHERE commit_time BETWEEN ? AND ? ORDER BY 1",
            (since, until),
        )
        return [row[0] for row in found]


def applied_once(target: Path) -> bool:
    """Check that thl_applied holds each seqno from 0 to that of the position exactly once."""
    with closing(sqlite3.connect(f"file:{target}?mode=ro", uri=True, timeout=30)) as connection:
        count, distinct, low, high = connection.execute(
            "SELECT count(*), count(DISTINCT seqno), min(seqno), max(seqno) FROM thl_applied"
        ).fetchone()
    return bool(count == distinct and low == 0 and high == count - 1 == probe(target).seqno)
