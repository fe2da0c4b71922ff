"""Snapshots for readers beside several writers (`target.snapshot_interval`).

Plain readers may see a divided commit in part. So further sessions export a snapshot every interval; the newest is in
`thl_progress.snapshot`, and the two before it live on, so that a reader has time to take one over. Only a snapshot in
which the position is consistent is published: the intent makes it inconsistent before any writer commits.

A snapshot does not hold for a table that is rewritten or renamed after it: PostgreSQL shows a rewritten table as empty,
and finds names as they are now. So a commit with DDL ends all snapshots first, and none is exported meanwhile.

A snapshot ends with the transaction that exported it, and with it an advisory lock, by which `thl_living_snapshots`
knows the living ones. Vacuum keeps what they see. An applier that is stopped loses them after a while.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final

import psycopg

from connector.errors import ConnectorError, PreflightError

LOG: Final = logging.getLogger(__name__)

ALIVE: Final = 3
BETWEEN_SECONDS: Final = 0.02  # between two queries while writers commit
RETRY_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 30  # after which the server ends the snapshot of an applier that is stopped, at least
JOIN_SECONDS: Final = 10.0

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_STATE: Final = """
SELECT p.consistent, EXISTS (SELECT FROM thl.thl_intent i WHERE i.service = p.service), p.seqno, p.gtid_set
FROM thl.thl_position p WHERE p.service = %s AND p.token = %s
"""
_EXPORT: Final = """
WITH one AS MATERIALIZED (
  SELECT hashtextextended(pg_backend_pid()::text || ' ' || clock_timestamp()::text, 0) & 9223372036854775807 AS key)
SELECT pg_export_snapshot(), key, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  pg_advisory_xact_lock_shared(key) FROM one
"""
_PUBLISH: Final = """
INSERT INTO thl.thl_snapshots (service, snapshot, seqno, gtid_set, exported_at, lock_key)
SELECT service, %s, %s, %s, %s, %s FROM thl.thl_position WHERE service = %s AND token = %s
ON CONFLICT (service) DO UPDATE SET snapshot = excluded.snapshot, seqno = excluded.seqno,
  gtid_set = excluded.gtid_set, exported_at = excluded.exported_at, lock_key = excluded.lock_key
"""

_NEEDED: Final = frozenset({"thl.thl_snapshots", "thl.thl_living_snapshots", "thl.thl_progress"})


def check_snapshots(missing: set[str]) -> None:
    """Check that snapshots can be published.

    Args:
        missing: what the target's bookkeeping lacks.

    Raises:
        PreflightError: a table or view is lacking, or is that of an earlier version.
    """
    if lacking := missing & _NEEDED:
        raise PreflightError(
            f"snapshots for readers need {', '.join(sorted(lacking))}, which the account may not create or replace",
            hint="GRANT CREATE, USAGE ON SCHEMA thl TO …, and for a view start once as its owner; or "
            "target.snapshot_interval: 0",
        )


class SnapshotExporter:
    """Exports snapshots in a thread of its own, from `start` until `close` or a newer claim.

    Args:
        opened: opens a session in autocommit.
        interval: seconds between two snapshots; 0: none are exported.
    """

    def __init__(self, opened: Callable[[], psycopg.Connection], interval: float) -> None:
        self._opened = opened
        self._interval = interval
        self._owner: tuple[str, int] = ("", 0)
        self._sessions: list[psycopg.Connection] = []
        self._free: deque[psycopg.Connection] = deque()
        self._living: deque[psycopg.Connection] = deque()  # whose transactions hold a snapshot, the oldest first
        self._ended = Event()
        self._exporting = Lock()  # held while the sessions are used
        self._thread: Thread | None = None

    @property
    def on(self) -> bool:
        """True if snapshots are configured."""
        return self._interval > 0

    def start(self, service: str, token: int) -> None:
        """Begin to export for a service, under the token of the applier's claim."""
        self._owner = (service, token)
        self._thread = Thread(target=self._run, name="thl-snapshots", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and the living snapshots with their sessions."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)

    @contextmanager
    def withdrawn(self) -> Iterator[None]:
        """End all snapshots, and export none within the context.

        Raises:
            psycopg.Error: a session does not answer.
        """
        with self._exporting:
            self._end_all()
            yield

    def _run(self) -> None:
        owned = True
        while owned and not self._ended.is_set():
            try:
                with self._exporting:
                    self._open()
                owned = self._export_until_ended()
            except (psycopg.Error, ConnectorError) as error:
                fields = {"service": self._owner[0], "why": " ".join(str(error).split())}
                LOG.warning("readers get no snapshot of the target: trying again", extra=fields)
                self._ended.wait(RETRY_SECONDS)
            finally:
                with self._exporting:
                    self._living.clear()
                    for session in self._sessions:
                        session.close()

    def _open(self) -> None:
        self._sessions = []
        self._living.clear()
        self._free.clear()
        for _ in range(ALIVE + 1):
            self._sessions.append(self._opened())
            idle = max(IDLE_SECONDS, 10 * self._interval)
            self._sessions[-1].execute(f"SET idle_in_transaction_session_timeout = '{idle:.0f}s'".encode())
            self._sessions[-1].execute("SET synchronous_commit = off")  # a snapshot that a crash loses has ended anyway
            self._free.append(self._sessions[-1])

    def _export_until_ended(self) -> bool:
        """Return False once a newer applier has claimed the target."""
        while not self._ended.is_set():
            with self._exporting:
                seconds = self._export()
            if seconds is None:
                return False
            self._ended.wait(seconds)
        with self._exporting:
            self._end_all()
        return True

    def _export(self) -> float | None:
        """Export a snapshot if the target is consistent.

        Returns:
            Seconds until the next one; None once a newer applier has claimed the target.
        """
        session = self._free[0]
        session.execute(_BEGIN)
        found = session.execute(_STATE, self._owner).fetchone()
        if found is None:
            return None
        consistent, open_intent, seqno, gtid_set = found
        if not consistent:
            session.execute("ROLLBACK")
            if open_intent:
                return BETWEEN_SECONDS
            self._end_all()  # a load or a rewind may take hours, in which vacuum would wait
            return self._interval
        exported = session.execute(_EXPORT).fetchone()
        self._living.append(self._free.popleft())
        if exported is None:
            return None
        snapshot, key, at, _ = exported
        return self._interval if self._publish(snapshot, key, at, seqno, gtid_set) else None

    def _publish(self, snapshot: str, key: int, at: int, seqno: int, gtid_set: str | None) -> bool:
        """Publish the newest snapshot, and end one that is too old; return False if a newer applier has claimed."""
        self._end_oldest(ALIVE)
        published = self._free[0].execute(_PUBLISH, (snapshot, seqno, gtid_set, at, key, *self._owner))
        return published.rowcount == 1

    def _end_oldest(self, most: int) -> None:
        """End the oldest snapshot if more than `most` live."""
        if len(self._living) > most:
            oldest = self._living.popleft()
            oldest.execute("COMMIT")
            self._free.append(oldest)

    def _end_all(self) -> None:
        while self._living:
            self._end_oldest(0)
