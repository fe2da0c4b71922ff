"""Reads the source's numbers: the end of its binary log, its readers, and its retention."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from connector.config.snapshot import InitialLoad
from connector.config.source import Source
from connector.log.epochs.load_pause import LoadPause
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.server.connection import connect, source_errors
from connector.mysql.server.replication_status import ReplicationChannel, replication_channels
from connector.mysql.server.semi_sync import SemiSyncState, read_state
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import (
    binary_logs,
    end_position,
    gtid_executed,
    is_read,
    seconds_until_purge,
)
from connector.mysql.snapshot.load_conditions import LoadConditions, last_known_write


@dataclass(frozen=True, slots=True)
class SourceView:
    """The state of the source's binary log.

    Args:
        end: the end of the binary log.
        gtid_set: the executed GTIDs; None if the source has no GTIDs.
        read: true if a replica with source.server_id is registered; on MariaDB, if a producer with it reads the log.
        files: the names of its files, oldest first.
        expire_seconds: seconds after its last event for which a file is kept; 0: unlimited.
        semi_sync: its semi-synchronous replication; None: it has none.
        channels: the channels by which it replicates; none where `max_replica_lag` does not ask for them.
        server_uuid: the server; "": unknown.
    """

    end: SourcePosition
    gtid_set: str | None
    read: bool
    files: tuple[str, ...]
    expire_seconds: int
    semi_sync: SemiSyncState | None = None
    channels: Sequence[ReplicationChannel] = ()
    server_uuid: str = ""

    def seconds_until_purge(self, position: PositionRecord, newest_commit: int | None, now: int) -> float | None:
        """Return a lower bound of the time until the file that is needed next is purged; None: never, or unknown.

        Args:
            position: the log's.
            newest_commit: commit time of the log's newest event, in µs; None: unknown.
            now: the time, in µs.
        """
        if position.server_uuid and self.server_uuid and position.server_uuid != self.server_uuid:
            return None  # the position names a file of the server before
        written = last_known_write(position, newest_commit)
        return seconds_until_purge(self.files, self.expire_seconds, position.resume.file, written, now)

    def load_pause(
        self, settings: InitialLoad, position: PositionRecord, newest_commit: int | None, now: int
    ) -> LoadPause | None:
        """Return the reason for which no round of loads begins; None: the source shows none.

        Args:
            settings: `source.snapshot`.
            position, newest_commit, now: as of `seconds_until_purge`.
        """
        until_purge = self.seconds_until_purge(position, newest_commit, now)
        return LoadConditions(position.resume, self.end, until_purge, self.channels).pause(settings)


def read_source(source: Source) -> SourceView:
    """Read the state of the source.

    Raises:
        SourceUnavailable: the source does not answer.
        PreflightError: the source refuses the user.
    """
    with closing(connect(source)) as connection, source_errors(source):
        facts = read_facts(connection)
        return SourceView(
            end=end_position(connection),
            gtid_set=gtid_executed(connection),
            read=is_read(connection, source.server_id),
            files=tuple(file for file, _ in binary_logs(connection)),
            expire_seconds=facts.expire_seconds,
            semi_sync=read_state(connection),
            channels=replication_channels(connection) if source.snapshot.max_replica_lag is not None else (),
            server_uuid=facts.server_uuid,
        )
