"""Reads the source's binary log: purged files from the archive, then the server's stream."""

from __future__ import annotations

import logging
from typing import Final

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import HistoriesDiffer, Purged
from connector.log.gtid.source_gtids import HasGtids, parse_gtids
from connector.log.transaction.position import Finished, PositionRecord, SourcePosition, StreamStart
from connector.mysql.archive.archive import Archive
from connector.mysql.archive.archived_log import ArchivedLog, covering, holds, previous_gtids
from connector.mysql.archive.file_identity import beginning_in_archive, beginning_on_server, check_beginning
from connector.mysql.binlog.byte_source import ByteSource
from connector.mysql.binlog.events.column_names import ColumnNameResolver
from connector.mysql.binlog.frames import EventFrames, Frames, PacketFrames, SemiSyncFrames
from connector.mysql.binlog.log_files import LogFile
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.server import source_state
from connector.mysql.server.connection import Connection, session
from connector.mysql.server.dump import open_stream
from connector.mysql.server.semi_sync import SemiSyncAcknowledger
from connector.mysql.server.source_facts import read_facts
from connector.mysql.transforms.filters import Filter
from connector.producer.sources.source import Stream

LOG: Final = logging.getLogger(__name__)
EARLIEST: Final = "earliest"


class SourceLog:
    """The source's binary log.

    Args:
        config: the source and the service.
        clock: the clock that measures silence.
        acknowledger: acknowledges on the server's streams; None: they are not semi-synchronous.
    """

    def __init__(self, config: Config, clock: Clock, acknowledger: SemiSyncAcknowledger | None = None) -> None:
        self._acknowledger = acknowledger
        self._service = config.service
        self._source = config.source
        self._clock = clock
        self._archive = Archive(config.source.archive) if config.source.archive else None
        self.created: dict[str, int] = {}  # file that was read → its creation time

    def start(self, connection: Connection) -> source_state.StartPosition:
        """Return the start of a new log, by `source.start`.

        Raises:
            ConfigError: `source.start` is not a position.
            Purged: neither the server nor the archive has it.
            HistoriesDiffer: the server never had it.
        """
        found = source_state.resolve_start(connection, self._source.start)
        if self._archive is not None and self._source.start == EARLIEST:
            first = next(iter(self._archive.files()), None)
            start = first and SourcePosition(first.name, source_state.FIRST_EVENT)
            if first and start and found.position is not None and start < found.position:
                before = previous_gtids(first) if found.gtid_set is not None else None
                return source_state.StartPosition(start, None if before is None else str(before))
        self._check(connection, found.stream)
        return found

    def holds(self, finished: Finished) -> bool:
        """Return True while the server or the archive has the transaction."""
        with session(self._source) as connection:
            purged = source_state.gtid_purged(connection) if finished.gtid is not None else None
            files = dict(source_state.binary_logs(connection))
        if purged is not None and finished.gtid is not None:
            there = finished.gtid not in parse_gtids(purged)
        else:
            there = finished.start.file in files
        return there or (self._archive is not None and holds(self._archive, finished))

    def check(self, start: StreamStart) -> None:
        """Check that the server or the archive has the next transactions.

        Raises:
            Purged, HistoriesDiffer, PreflightError: see `read`.
        """
        with session(self._source) as connection:
            self._check(connection, start)

    def end(self) -> SourcePosition:
        """Return the current end of the server's log."""
        return source_state.log_end(self._source)

    def keeps_file(self, position: PositionRecord) -> bool:
        """Return True while the server or the archive has the file of a position of this server.

        Raises:
            HistoriesDiffer: the file of that name is another one.
        """
        name = position.resume.file
        with session(self._source) as connection:
            on_server = name in dict(source_state.binary_logs(connection))
            owner = read_facts(connection).server_uuid
        if on_server:
            check_beginning(position, beginning_on_server(self._source, name, self._clock, self._service))
            return True
        if self._archive is None or self._archive.owner != owner:
            return False
        archived = covering(self._archive, position.resume)
        if archived is not None:
            check_beginning(position, beginning_in_archive(archived))
        return archived is not None

    def read(
        self, start: StreamStart, captured: Filter, resolver: ColumnNameResolver, known: HasGtids | None = None
    ) -> Stream:
        """Return a stream from a start on.

        Args:
            start: the first position.
            captured: the capture filter.
            names: resolves column names that the log lacks.
            known: transactions after a file and offset whose rows are not decoded; None: none.

        Raises:
            Purged: neither the server nor the archive has it.
            HistoriesDiffer, PreflightError, SourceUnavailable: see `check_available` and `open_stream`.
        """
        with session(self._source) as connection:
            archived = self._check(connection, start)
        if archived is None:
            return self._stream(start, captured, resolver, known)
        fields = {"service": self._service, "file": archived, "start": start}
        LOG.info("reading files that the source has purged from the archive", extra=fields)

        def of_file(source: ByteSource, file: LogFile, before: HasGtids | None) -> BinlogReader:
            return self._reader(source, EventFrames(), captured, resolver, file=file.name, known=before or known)

        def live(next_: StreamStart) -> BinlogReader:
            with session(self._source) as connection:
                source_state.check_available(connection, next_)
            LOG.info("the archive was read: continuing with the source's stream", extra=fields | {"start": next_})
            return self._stream(next_, captured, resolver, known)

        if self._archive is None:
            raise RuntimeError("there is no archive")
        return ArchivedLog(self._archive, start, archived, of_file, live)

    def _check(self, connection: Connection, start: StreamStart) -> LogFile | None:
        """Check that the server has the next transactions.

        Returns:
            The archived file to begin with if the server has purged it; else None.
        """
        try:
            source_state.check_available(connection, start)
        except Purged as gone:
            if self._archive is None:
                raise
            if isinstance(start, SourcePosition):
                self._check_owner(connection, self._archive)
            found = covering(self._archive, start)
            if found is None:
                oldest = next(iter(self._archive.files()), None)
                raise Purged(
                    f"{gone.message}; the archive does not have it either",
                    hint=gone.hint,
                    archive=self._archive,
                    oldest_archived=oldest.name if oldest else "none",
                ) from gone
            return found
        return None

    def _check_owner(self, connection: Connection, archive: Archive) -> None:
        """Refuse an archive of another server: a file and offset is valid on its own server only."""
        server = read_facts(connection).server_uuid
        if archive.owner not in {None, server}:
            raise HistoriesDiffer(
                "the archive holds another server's binary log, and without GTIDs its position there is unknown",
                archive=archive,
                owner=archive.owner,
                source=server,
            )

    def _stream(
        self, start: StreamStart, captured: Filter, resolver: ColumnNameResolver, known: HasGtids | None
    ) -> BinlogReader:
        acknowledger = self._acknowledger
        stream = open_stream(self._source, start, self._clock, service=self._service, acknowledger=acknowledger)
        frames = PacketFrames() if acknowledger is None else SemiSyncFrames()
        return self._reader(stream, frames, captured, resolver, known=known)

    def _reader(
        self,
        source: ByteSource,
        frames: Frames,
        captured: Filter,
        resolver: ColumnNameResolver,
        *,
        file: str = "",
        known: HasGtids | None = None,
    ) -> BinlogReader:
        return BinlogReader(
            source,
            frames,
            filters=captured,
            service=self._service,
            batch_bytes=self._source.batch_bytes,
            file=file,
            resolver=resolver,
            known=known,
            created=self.created,
        )
