"""Conditions on the source that delay a round of loads.

The stream waits while a round is published. So no round begins while the stream has to catch up, the more so if the
source purges what it needs next, nor while a source that is a replica lags too far to be read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connector.config.snapshot import InitialLoad
from connector.log.epochs.load_pause import LoadPause, PauseCause, stream_behind
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.server.connection import Connection
from connector.mysql.server.replication_status import ReplicationChannel, replication_channels
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import binary_logs, end_position, seconds_until_purge


@dataclass(frozen=True, slots=True)
class LoadConditions:
    """The state of the source, as far as loads depend on it.

    Args:
        read: the position of the stream, which needs next what follows.
        end: the end of the source's binary log.
        until_purge: seconds until the source may purge the file of `read`; None: never, unknown, or the newest file.
        channels: the channels by which the source replicates; none where `max_replica_lag` does not ask for them.
    """

    read: SourcePosition
    end: SourcePosition
    until_purge: float | None
    channels: Sequence[ReplicationChannel] = ()

    def pause(self, settings: InitialLoad) -> LoadPause | None:
        """The reason for which no round begins; None: one may."""
        return (
            self._purge(settings.min_until_purge)
            or self._lag(settings.max_replica_lag)
            or stream_behind(self.read, self.end)
        )

    def _purge(self, least: float | None) -> LoadPause | None:
        left = self.until_purge
        if least is None or left is None or left >= least or self.read.file == self.end.file:
            return None
        may = f"may purge it in {left:.0f} s" if left > 0 else "may purge it at any moment"
        return LoadPause(
            PauseCause.PURGE,
            f"the stream is in {self.read.file}, and the source, whose log ends in {self.end.file}, {may}: it has to "
            f"catch up first (source.snapshot.min_until_purge is {least:.0f})",
            "keep binary logs longer on the source: binlog_expire_logs_seconds",
        )

    def _lag(self, most: float | None) -> LoadPause | None:
        if most is None:
            return None
        if stopped := stopped_channel(self.channels, most):
            return stopped
        worst = max(self.channels, key=lambda channel: channel.lag or 0.0, default=None)
        if worst is None or (worst.lag or 0.0) <= most:
            return None
        return LoadPause(
            PauseCause.REPLICA_LAG,
            f"the source lags {worst.lag:.0f} s behind its own source, {worst} (source.snapshot.max_replica_lag is "
            f"{most:g})",
        )


def stopped_channel(channels: Sequence[ReplicationChannel], most: float) -> LoadPause | None:
    """The pause for a channel that does not run; None: all run.

    Args:
        channels: of the source.
        most: `max_replica_lag`.
    """
    stopped = next((channel for channel in channels if channel.lag is None), None)
    if stopped is None:
        return None
    return LoadPause(
        PauseCause.REPLICA_STOPPED,
        f"the source's replication from {stopped} does not run ({stopped.threads}), so it is not known how far the "
        f"source lags (source.snapshot.max_replica_lag is {most:g})",
        "START REPLICA on the source, or RESET REPLICA ALL if it is no replica any more; or unset "
        "source.snapshot.max_replica_lag",
    )


def last_known_write(position: PositionRecord, newest_commit: int | None) -> int | None:
    """A time at which the file of a position was written, in µs; None: unknown.

    Args:
        position: the stream's.
        newest_commit: commit time of the newest event of the log, which is in that file or an earlier one, in µs.
    """
    return max(newest_commit or 0, position.created * 1_000_000) or None


def read_conditions(
    connection: Connection, settings: InitialLoad, position: PositionRecord, newest_commit: int | None, now: int
) -> LoadConditions:
    """Read the state of the source.

    Args:
        connection: an idle session.
        settings: decides what has to be known.
        position: the stream's.
        newest_commit: as of `last_known_write`.
        now: the time, in µs.

    Raises:
        pymysql.MySQLError: of the server, e.g. since the user may not see how far it lags.
        PreflightError: there is no binary log.
    """
    read, end, left = position.resume, end_position(connection), None
    if read.file and end.file != read.file:  # only then: a server may have thousands of files
        files = [file for file, _ in binary_logs(connection)]
        expire_seconds = read_facts(connection).expire_seconds
        left = seconds_until_purge(files, expire_seconds, read.file, last_known_write(position, newest_commit), now)
    channels = replication_channels(connection) if settings.max_replica_lag is not None else ()
    return LoadConditions(read, end, left, channels)
