"""Reads the source's numbers: the end of its binary log, its readers, and its retention."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from connector.config.source import Source
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import connect, speaking_to
from connector.mysql.server.semi_sync import SemiSyncState, read_state
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import binary_logs, end_position, gtid_executed, is_read


@dataclass(frozen=True, slots=True)
class SourceView:
    """The state of the source's binary log.

    Args:
        end: the end of the binary log.
        gtid_set: the executed GTIDs; None if the source has no GTIDs.
        read: true if a replica with source.server_id is registered; on MariaDB, if source.user reads the log.
        files: the names of its files, oldest first.
        expire_seconds: seconds after its last event for which a file is kept; 0: unlimited.
        semi_sync: its semi-synchronous replication; None: it has none.
    """

    end: SourcePosition
    gtid_set: str | None
    read: bool
    files: tuple[str, ...]
    expire_seconds: int
    semi_sync: SemiSyncState | None = None

    def seconds_until_purge(self, file: str, last_commit: int | None, now: int) -> float | None:
        """Return a lower bound of the time until a file is purged; None: never, or unknown.

        A file is purged `expire_seconds` after its last write, which is not before the last known event in it. The
        newest file is never purged.

        Args:
            file: the file that is needed next.
            last_commit: commit time of the last known event in it, in µs.
            now: the time, in µs.
        """
        if not self.expire_seconds or last_commit is None:
            return None
        if file not in self.files:
            return 0.0
        if file == self.files[-1]:
            return float(self.expire_seconds)
        return last_commit / 1e6 + self.expire_seconds - now / 1e6


def read_source(source: Source) -> SourceView:
    """Read the state of the source.

    Raises:
        SourceUnavailable: the source does not answer.
        PreflightError: the source refuses the user.
    """
    with closing(connect(source)) as connection, speaking_to(source):
        facts = read_facts(connection)
        return SourceView(
            end=end_position(connection),
            gtid_set=gtid_executed(connection),
            read=is_read(connection, source.server_id),
            files=tuple(file for file, _ in binary_logs(connection)),
            expire_seconds=facts.expire_seconds,
            semi_sync=read_state(connection),
        )
